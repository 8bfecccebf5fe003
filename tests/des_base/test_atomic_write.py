"""Files that several processes write at once, and what lies in the way of their temporary names."""

import os
import subprocess
import time
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import python

from des.base.atomic_write import finish_together, target_of, write_atomically, write_together

_WRITER = """
import sys
from pathlib import Path
from des.base.atomic_write import write_together
letter, folder, count = sys.argv[1].encode(), Path(sys.argv[2]), int(sys.argv[3])
for number in range(count):
    size = 1 + (number * 7919) % 40_000
    write_together({folder / "a.txt": letter * size, folder / "b.txt": letter * size}, synced=False)
"""

names = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=40
).filter(lambda name: name not in (".", "..") and len(name.encode()) <= 240)


@pytest.mark.attack
def test_files_that_processes_write_at_once_are_never_torn(tmp_path):
    """A reader sees one write as a whole, no writer fails, and nothing is left."""
    with ExitStack() as writers:
        started = [
            writers.enter_context(
                python("-c", _WRITER, letter, str(tmp_path), "60", stderr=subprocess.PIPE)
            )
            for letter in "xyz"
        ]
        num_read = 0
        while any(each.poll() is None for each in started):
            for path in (tmp_path / "a.txt", tmp_path / "b.txt"):
                if path.exists():
                    content = path.read_bytes()
                    assert content, path
                    assert content == content[:1] * len(content)
                    num_read += 1
        errors = [each.communicate()[1] for each in started]

    assert errors == [b""] * 3
    assert num_read
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]


@pytest.mark.attack
@given(name=names, content=st.binary(max_size=64), is_link=st.booleans())
def test_a_planted_link_is_not_followed(tmp_path_factory, name, content, is_link):
    """Neither one with the temporary name of earlier releases, nor one in the file's own place."""
    folder = tmp_path_factory.mktemp("planted")
    victim, path = folder / "\x01victim", folder / name
    victim.write_bytes(b"of another user")
    (path if is_link else folder / f".{name}.tmp").symlink_to(victim)

    write_atomically(path, content)

    assert victim.read_bytes() == b"of another user"
    assert path.read_bytes() == content
    assert not path.is_symlink()
    assert sorted(os.listdir(folder)) == sorted([victim.name, name])


@given(name=names)
def test_temporary_names_tell_their_file(tmp_path_factory, name):
    """Whatever the file is called, and only they do."""
    folder = tmp_path_factory.mktemp("names")
    os.mkdir(folder / name)  # in the way, so that the last step fails

    with pytest.raises(IsADirectoryError):
        write_atomically(folder / name, b"content")
    assert os.listdir(folder) == [name]

    written = folder / f".{name}.0123abcd.tmp"
    assert target_of(written) == folder / name
    assert target_of(folder / f".{name}.tmp") == folder / name
    assert target_of(folder / f"{name}.txt") is None


def test_the_newest_of_several_neighbours_is_put_in_place(tmp_path):
    """Older ones may be torn; planted links are left alone."""
    for age_s, name in enumerate(("c", "b", "a")):
        neighbour = tmp_path / f".in.yaml.0000000{name}.tmp"
        neighbour.write_text(name)
        os.utime(neighbour, (time.time() - age_s,) * 2)
    (tmp_path / ".in.yaml.0000000d.tmp").symlink_to(tmp_path / "elsewhere")

    finish_together([tmp_path / "in.yaml", tmp_path / "other.yaml"])

    assert (tmp_path / "in.yaml").read_text() == "c"
    assert not (tmp_path / "other.yaml").exists()


def test_what_a_process_left_goes_with_a_later_write(tmp_path):
    """After an hour: a writer that is at work keeps its own until then."""
    old, new = (tmp_path / f".a.txt.{token}.tmp" for token in ("00000000", "11111111"))
    for each in (old, new, tmp_path / ".b.txt.00000000.tmp"):
        each.write_text("part")
    hour_ago_s = time.time() - 3601.0
    os.utime(old, (hour_ago_s, hour_ago_s))

    write_together({tmp_path / "a.txt": b"whole"})

    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [".a.txt.11111111.tmp", ".b.txt.00000000.tmp", "a.txt"]
