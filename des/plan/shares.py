"""Replicas: how many microbatches of an iteration each takes, and the tree that they sum up on."""

import re
import reprlib
from typing import Literal

from des.base.checks import MOST_ITEMS, require_count

_COUNTED = {
    "shares": "a number of microbatches, such as 20,12",
    "tree": "the number of an earlier replica, from 0, such as 0,0",
}


def check_shares(shares: tuple[int, ...], num_replicas: int) -> None:
    """Refuse shares other than one count a replica; none at all means an even split.

    Raises
    ------
    ValueError
        Naming what is allowed and what came.
    """
    if not isinstance(shares, tuple) or (shares and len(shares) != num_replicas):
        raise ValueError(
            f"plan: shares must be a tuple of one number of microbatches for each of "
            f"{num_replicas} replicas, or empty; got {reprlib.repr(shares)}"
        )
    for replica, share in enumerate(shares):
        require_count("plan", f"share of replica {replica}", share, MOST_ITEMS)


def check_tree(tree: tuple[int, ...]) -> None:
    """Refuse a tree that does not name an earlier replica for each one but the first.

    Raises
    ------
    ValueError
        Naming what is allowed and what came.
    """
    if not isinstance(tree, tuple) or not all(
        isinstance(one, int) and not isinstance(one, bool) and 0 <= one <= place
        for place, one in enumerate(tree)
    ):
        raise ValueError(
            "gradient exchange: tree must be a tuple of one earlier replica, from 0, for each "
            f"replica but the first; got {reprlib.repr(tree)}"
        )


def parse_counts(text: str, field: Literal["shares", "tree"]) -> tuple[int, ...]:
    """Read one number for each replica: its microbatches, or the replica above it in a tree.

    Raises
    ------
    ValueError
        If an item is no whole number.

    Examples
    --------
    >>> parse_counts("20, 12", "shares")
    (20, 12)
    """
    items = text.split(",")
    for item in items:
        if not re.fullmatch(r"\s*[0-9]{1,9}\s*", item):
            raise ValueError(
                f"{field}: each item must be {_COUNTED[field]}; got {reprlib.repr(item)}"
            )
    return tuple(map(int, items))
