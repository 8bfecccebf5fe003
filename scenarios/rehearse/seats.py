"""Places of the ranks of a rehearsal."""

from typing import NamedTuple


class Seat(NamedTuple):
    """Place of a rank: its network namespace (none: that of the starter), streams and flags."""

    space: str
    stdin: int
    stdout: int
    flags: list[str]
