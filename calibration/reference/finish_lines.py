"""Finish lines of ASTRA-sim: when each NPU finished, and its time without computing by then."""

import re
from dataclasses import dataclass

FINISH_LINE = re.compile(
    r"sys\[(\d+)\] finished, (\d+) cycles, exposed communication (\d+) cycles", re.ASCII
)
MOST_CYCLES = 2**63
"""Beyond it are negative numbers, which the unsigned ones of the original turn into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Finish time of an NPU, and that time without its computations. [ns]"""

    cycles: int
    exposed_cycles: int

    def __post_init__(self) -> None:
        if not 0 <= self.exposed_cycles <= self.cycles < MOST_CYCLES or self.cycles == 0:
            raise ValueError(
                "finish: cycles must be from 1 to below 2**63 and at least those of exposed "
                "communication, "
                f"got {self.cycles} and {self.exposed_cycles}"
            )


def parse_finishes(output: str, num_npus: int) -> tuple[Finish, ...]:
    """Find the one finish line of every NPU.

    Returns
    -------
    tuple of Finish
        Rank by rank.

    Raises
    ------
    ValueError
        If an NPU has none or several, is none of these, or has impossible figures.

    Examples
    --------
    >>> line = "[...] sys[0] finished, 43000 cycles, exposed communication 12000 cycles."
    >>> parse_finishes(line, 1)
    (Finish(cycles=43000, exposed_cycles=12000),)
    """
    finishes: dict[int, Finish] = {}
    for match in FINISH_LINE.finditer(output):
        rank, cycles, exposed_cycles = map(int, match.groups())
        if rank >= num_npus:
            raise ValueError(f"finish lines: rank must be below {num_npus}, got {rank}")
        if rank in finishes:
            raise ValueError(f"finish lines: must be one a rank, got several of rank {rank}")
        finishes[rank] = Finish(cycles=cycles, exposed_cycles=exposed_cycles)
    missing = [rank for rank in range(num_npus) if rank not in finishes]
    if missing:
        raise ValueError(
            f"finish lines: must be there for all {num_npus} NPUs, got {len(finishes)}; "
            f"the first one missing is that of rank {missing[0]}"
        )
    return tuple(finishes[rank] for rank in range(num_npus))
