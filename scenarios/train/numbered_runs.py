"""Run folders that are numbered where the user names none."""

import re
from pathlib import Path

from des.base.command import UsageError

RUNS = Path("runs")


def next_run() -> Path:
    """Return the path of the next run folder."""
    return _numbered(max(_numbers(), default=0) + 1)


def newest_run(prog: str) -> Path:
    """Return the path of the newest run folder.

    Raises
    ------
    UsageError
        If there is none.
    """
    numbers = _numbers()
    if not numbers:
        raise UsageError(f"{prog}: --resume must find a run in {RUNS}, or be told by --out")
    return _numbered(max(numbers))


def _numbered(number: int) -> Path:
    return RUNS / f"east_west-{number:03}"


def _numbers() -> list[int]:
    """Numbers of the runs that there are."""
    matches = (re.fullmatch(r"east_west-(\d{3,9})", path.name) for path in RUNS.glob("*"))
    return [int(match[1]) for match in matches if match is not None]
