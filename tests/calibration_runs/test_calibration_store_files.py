"""Files of the store of runs: foreign, damaged, write-protected, full or in use."""

import sqlite3
import subprocess
import sys

import pytest
from stored_runs import MEASUREMENT, bits, run_key

from calibration.runs.store import Store
from des.base.store_file import VERSION, connected


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return Store.open(tmp_path / "runs.sqlite")


def test_a_store_of_a_newer_version_is_refused(store):
    store.put(run_key(), MEASUREMENT)
    with connected(store.path, "rw", "runs") as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")

    newer = rf"runs\.sqlite: must be of version {VERSION}, got {VERSION + 1}, which a newer release"
    with pytest.raises(ValueError, match=newer):
        Store.open(store.path)
    with pytest.raises(ValueError, match=newer):
        store.get(run_key())
    with pytest.raises(ValueError, match=newer):
        store.put(run_key(2), MEASUREMENT)


def test_other_files_are_refused_and_left_alone(tmp_path):
    text, database = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("not a database, but longer than the header of one\n" * 10)
    with connected(database, "rwc", "notes") as connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
    before = text.read_bytes(), database.read_bytes()

    with pytest.raises(ValueError, match=r"notes\.txt: must be a store of runs, got another"):
        Store.open(text)
    with pytest.raises(ValueError, match=r"other\.sqlite: must be a store of runs, got another"):
        Store.open(database)
    assert (text.read_bytes(), database.read_bytes()) == before


@pytest.mark.parametrize("name", ["missing.sqlite", "no_folder/runs.sqlite", ""])
def test_a_store_that_is_not_there_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="cannot be opened; it must be a file, in a folder that"):
        Store.open(tmp_path / name, must_exist=True)
    assert list(tmp_path.iterdir()) == []


def test_names_may_hold_what_means_something_to_sqlite(tmp_path):
    store = Store.open(tmp_path / "50% of #1? & more.sqlite")
    store.put(run_key(), MEASUREMENT)

    assert [path.name for path in tmp_path.iterdir()] == ["50% of #1? & more.sqlite"]


def test_a_damaged_file_never_gives_another_number(store, tmp_path):
    """A flipped byte anywhere: the run is whole, or gone (and would be made again), or refused."""
    store.put(run_key(), MEASUREMENT, {"model": "llama2_7b"}, created_s=1.0)
    content = store.path.read_bytes()
    damaged = Store(path=tmp_path / "damaged.sqlite")
    refused = unharmed = 0
    touched = [*range(100), *(at for at in range(len(content)) if content[at])]
    for at in touched:
        damaged.path.write_bytes(content[:at] + bytes([content[at] ^ 0x15]) + content[at + 1 :])
        try:
            found = damaged.get(run_key())
        except ValueError as error:
            refused += str(error).startswith(f"store {damaged.path}: ")
        else:
            unharmed += found is None or bits(found) == bits(MEASUREMENT)
    assert refused + unharmed == len(touched)
    assert refused > len(touched) / 2


def test_half_a_file_is_refused(store):
    for number in range(50):
        store.put(run_key(number), MEASUREMENT)
    content = store.path.read_bytes()
    store.path.write_bytes(content[: len(content) // 2])

    with pytest.raises(ValueError, match=r"runs\.sqlite: .*damaged"):
        store.rows()


def test_a_file_that_may_not_be_written_can_still_be_read(store):
    """A write version above 2 makes a database read-only, also for a superuser.

    See "The Database File Format", section 1.3.3, sqlite.org/fileformat2.html.
    """
    store.put(run_key(), MEASUREMENT)
    content = bytearray(store.path.read_bytes())
    content[18] = 3
    store.path.write_bytes(bytes(content))

    assert Store.open(store.path).get(run_key()) == MEASUREMENT
    assert len(store.rows()) == 1
    with pytest.raises(ValueError, match=r"runs\.sqlite: cannot be written, as the file or its"):
        store.put(run_key(2), MEASUREMENT)
    with pytest.raises(ValueError, match=r"runs\.sqlite: cannot be written, as the file or its"):
        store.prune(keep_newest=0)


def test_a_full_disk_is_one_clear_error(store):
    """A limit on the number of pages is where SQLite says that the disk is full."""

    def fill():
        with connected(store.path, "rw", "runs") as connection:
            connection.execute("PRAGMA max_page_count = 1")
            connection.execute("CREATE TABLE more AS SELECT zeroblob(100000)")

    with pytest.raises(ValueError, match=r"runs\.sqlite: cannot be written, as the disk is full"):
        fill()


def test_a_file_that_cannot_grow_keeps_what_it_has(store):
    """A process that may write 40 kB of a file meets the limit within a hundred runs."""
    script = """
import resource, signal, sys
from calibration.cases.case import Measurement
from calibration.cases.case_key import RunKey
from calibration.runs.store import Store

store = Store.open(sys.argv[1])
measurement = Measurement(makespan_s=1.0, communication_bytes=0.0, exposed_s=())
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
for number in range(100):
    key = RunKey(case_digest=str(number), backend="aware", aggregation=None, version="1")
    try:
        store.put(key, measurement, {"note": "x" * 1000})
    except ValueError as error:
        print(error)
        break
print(number)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(store.path)], capture_output=True, text=True, check=True
    )
    error, number = done.stdout.splitlines()

    assert "runs.sqlite: cannot be read or written by the system" in error
    assert 0 < int(number) < 99
    rows = store.rows()
    assert len(rows) == int(number)
    store.put(run_key(), MEASUREMENT)


def test_a_store_in_use_waits_for_its_turn(store):
    """Another connection that reads does not hinder, and SQLite's errors are Store's."""
    other = sqlite3.connect(store.path, isolation_level=None)
    try:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM runs").fetchone()
        assert store.get(run_key()) is None
    finally:
        other.close()
    store.put(run_key(), MEASUREMENT)
    assert store.get(run_key()) == MEASUREMENT
