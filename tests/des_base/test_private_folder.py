"""The cache of compiled code is unpickled, so its folder is private."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ROOT

from des.base.private_folder import cache_folder, is_private

SHOW = "from des.base.private_folder import user_cache_folder; print(user_cache_folder())"


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """A folder as the one for temporary files: everybody may write into it."""
    tmp_path.chmod(0o1777)
    return tmp_path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def shared_in(folder: Path) -> Path:
    return folder / f"eastwest-{os.geteuid()}"


def test_a_new_folder_is_closed_to_others_whatever_the_umask(parent):
    before = os.umask(0)
    try:
        assert is_private(parent / "deep" / "cache")
    finally:
        os.umask(before)

    assert mode_of(parent / "deep" / "cache") == 0o700


def test_one_of_ours_that_others_may_read_is_closed_to_them(parent):
    (parent / "cache").mkdir(mode=0o755)

    assert is_private(parent / "cache")
    assert mode_of(parent / "cache") == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_one_that_others_could_have_written_is_refused_and_left_alone(mode, parent):
    (parent / "cache").mkdir()
    (parent / "cache").chmod(mode)

    assert not is_private(parent / "cache")
    assert mode_of(parent / "cache") == mode


def test_a_link_is_refused_wherever_it_points(parent):
    (parent / "real").mkdir(mode=0o700)
    (parent / "link").symlink_to(parent / "real")
    (parent / "dangling").symlink_to(parent / "nowhere")

    assert not is_private(parent / "link")
    assert not is_private(parent / "dangling")
    assert not (parent / "nowhere").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_a_folder_of_another_user_is_refused(parent):
    (parent / "cache").mkdir(mode=0o700)
    os.chown(parent / "cache", 54321, 54321)

    assert not is_private(parent / "cache")


def test_the_shared_folder_is_taken_where_there_is_no_home(parent):
    assert cache_folder(None, str(parent)) == shared_in(parent)
    assert cache_folder(str(parent), None) == parent / "eastwest"


def test_a_planted_shared_folder_is_passed_over_for_one_of_this_process(parent):
    """With what it holds: nothing of it is ever read."""
    (parent / "planted").mkdir()
    shared_in(parent).symlink_to(parent / "planted")
    (parent / "file").write_text("")

    found = cache_folder(str(parent / "file"), str(parent))

    assert found is not None
    assert found != shared_in(parent)
    assert (found.parent, mode_of(found)) == (parent, 0o700)
    assert list((parent / "planted").iterdir()) == []


def test_a_folder_of_one_process_goes_with_it(parent):
    shared_in(parent).symlink_to(parent)
    environment = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": "/dev/null", "TMPDIR": str(parent)}
    done = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True
    )

    assert Path(done.stdout.strip()).parent == parent
    assert not Path(done.stdout.strip()).exists()


def test_without_any_folder_that_can_be_written_nothing_is_kept(tmp_path):
    (tmp_path / "file").write_text("")
    nowhere = str(tmp_path / "file")

    assert cache_folder(nowhere, nowhere) is None


NO_ENTRY = f"""
import pwd
def none(number):
    raise KeyError("getpwuid(): uid not found")  # what a system without our entry says
pwd.getpwuid = none
{SHOW}
"""


def test_without_home_and_entry_of_the_user_the_shared_folder_is_taken(parent):
    """As in a container that runs with a number of its own."""
    environment = {"PYTHONPATH": str(ROOT), "TMPDIR": str(parent)}
    done = subprocess.run(
        [sys.executable, "-c", NO_ENTRY],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == str(shared_in(parent))
