"""Reports of run folders: regular files of the folders themselves, no links to other places."""

import os
import stat
from contextlib import ExitStack
from pathlib import Path

REPORT = "report.html"
_MOST_BYTES = 64 * 2**20


def names_with_report(runs: Path) -> list[str]:
    """Names of the folders in a folder that have a report, sorted."""
    if not runs.is_dir():
        return []
    with os.scandir(runs) as entries:
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return sorted(name for name in folders if _is_regular(runs / name / REPORT))


def read_report(runs: Path, name: str) -> bytes | None:
    """Return the report of a folder; None if there is none, or it is a link or too large."""
    if name not in names_with_report(runs):
        return None
    with ExitStack() as opened:

        def opened_in(folder: int | None, path: str | Path, flags: int) -> int:
            descriptor = os.open(path, os.O_RDONLY | flags, dir_fd=folder)
            opened.callback(os.close, descriptor)
            return descriptor

        try:  # step by step: what was a folder or a file just now may be a link by now
            folder = opened_in(None, runs, os.O_DIRECTORY)
            own = opened_in(folder, name, os.O_DIRECTORY | os.O_NOFOLLOW)
            report = opened_in(own, REPORT, os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        found = os.fstat(report)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            return None
        with open(report, "rb", closefd=False) as file:
            return file.read(_MOST_BYTES)


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
