"""Shares of the replicas: how many microbatches of an iteration each of them takes."""

import re
import reprlib

from des.base.checks import MOST_ITEMS, require_count


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


def parse_shares(text: str) -> tuple[int, ...]:
    """Read the microbatches of each replica.

    Raises
    ------
    ValueError
        If an item is no whole number.

    Examples
    --------
    >>> parse_shares("20, 12")
    (20, 12)
    """
    items = text.split(",")
    for item in items:
        if not re.fullmatch(r"\s*[0-9]{1,9}\s*", item):
            raise ValueError(
                f"shares: each item must be a number of microbatches, such as 20,12; "
                f"got {reprlib.repr(item)}"
            )
    return tuple(map(int, items))
