"""Reports of run folders: regular files of the folders themselves, no links to other places."""

import os
import stat
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
    try:  # by descriptors: what was a folder or a file just now may be a link by now
        folder = os.open(runs / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        report = os.open(REPORT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with open(report, "rb") as file:
            found = os.fstat(report)
            is_whole = stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_BYTES
            return file.read(_MOST_BYTES) if is_whole else None
    except OSError:
        return None
    finally:
        os.close(folder)


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
