"""Folders that are there with all their files or not at all, also after a kill."""

import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Give an empty folder to fill, which takes the place of ``folder`` at the end.

    Until then it is in a hidden one beside it, which its process holds locked. One that no process
    holds is of a process that was killed, and is removed.

    Raises
    ------
    OSError
        If ``folder`` cannot be made, or has something in it by then.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{folder.name}."
    for left in folder.parent.glob(f"{glob.escape(prefix)}????????"):  # as mkdtemp names
        _remove_if_left(left, folder.name)
    beside, held = _held_folder(folder.parent, prefix)
    try:
        growing = beside / folder.name
        growing.mkdir()
        yield growing
        growing.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        os.close(held)


def _held_folder(parent: Path, prefix: str) -> tuple[Path, int]:
    """Make a folder and hold it; one that was taken for left before it was held is gone."""
    while True:
        beside = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        held = os.open(beside, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.fstat(held).st_nlink:
            return beside, held
        os.close(held)


def _remove_if_left(beside: Path, name: str) -> None:
    """Remove a hidden folder of ours that no process holds."""
    try:
        held = os.open(beside, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return  # a file, a link, or another user's
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if {path.name for path in beside.iterdir()} <= {name}:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError:
        return  # a process works on it
    finally:
        os.close(held)
