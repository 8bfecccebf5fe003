"""Rows of a table of plans."""

from des.compiled.many.layout import Whole
from des.compiled.many.steady import Plans


def rows_of(plans: Plans, rows: Whole) -> Plans:
    """Return some of the plans."""
    return Plans(*(field[rows] for field in plans))
