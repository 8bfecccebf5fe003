"""Columns of a user's own table, as ``--columns WHAT=NAME`` gives them."""

from collections.abc import Mapping, Sequence

from des.base.command import UsageError


def named_columns(texts: Sequence[str]) -> Mapping[str, str]:
    """Names of columns by what they hold.

    Raises
    ------
    UsageError
        If a text is not ``WHAT=NAME``, or a column is given twice.

    Examples
    --------
    >>> named_columns(["time=t", "prompt=in=tokens"])
    {'time': 't', 'prompt': 'in=tokens'}
    """
    found: dict[str, str] = {}
    for text in texts:
        what, equals, name = text.partition("=")
        if not (what and equals and name) or what in found:
            raise UsageError(
                f"--columns must be WHAT=NAME each, once, such as time=t, got {text!r}"
            )
        found[what] = name
    return found
