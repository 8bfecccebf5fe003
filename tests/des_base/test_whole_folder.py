"""Folders that are there as a whole or not at all, whatever ends the process that fills them."""

import os
import signal
from functools import partial

import pytest
from forked import forked
from processes import wait_until

from des.base.whole_folder import whole_folder


def fill(folder, *, and_then):
    """Fill a folder with a file, then do something before it is whole."""
    with whole_folder(folder) as growing:
        (growing / "a").write_text("a")
        and_then()
    return 0


def names(folder):
    """Names of what is in a folder, and in folders in it."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_folder_appears_with_its_files(tmp_path):
    seen = []
    fill(tmp_path / "new" / "out", and_then=lambda: seen.extend(names(tmp_path / "new")))

    assert "out" not in seen
    assert names(tmp_path / "new") == ["out", "out/a"]


def test_a_folder_that_is_not_filled_is_not_there(tmp_path):
    with pytest.raises(ZeroDivisionError):
        fill(tmp_path / "out", and_then=lambda: 1 // 0)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "b").write_text("b")
    with pytest.raises(OSError, match="not empty"):
        fill(tmp_path / "out", and_then=lambda: None)

    assert names(tmp_path) == ["out", "out/b"]


@pytest.mark.attack
@pytest.mark.parametrize("name", ["out", "a[b]*?"])
def test_what_a_killed_process_left_goes_with_the_next_call(name, tmp_path):
    """What a process works on stays, and so does what is not of these calls."""
    out, kept = tmp_path / name, tmp_path / f".{name}.abcdefgh"
    kept.mkdir()
    (kept / "mine").write_text("mine")

    def begun(count):
        number = forked(partial(fill, out, and_then=signal.pause), tmp_path, tmp_path / "errors")
        wait_until(lambda: len(list(tmp_path.glob(".*/*/a"))) == count)
        return number

    first, second = begun(1), begun(2)
    os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)
    fill(out, and_then=lambda: None)
    left = list(tmp_path.glob(".*/*/a"))
    os.kill(second, signal.SIGKILL)
    os.waitpid(second, 0)

    assert len(left) == 1
    assert (kept / "mine").read_text() == "mine"
    assert (out / "a").read_text() == "a"
