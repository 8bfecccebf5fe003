"""The store of runs: what is written comes back as it was, from any number of processes."""

import math
import pickle
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_runs import MEASUREMENT, bits, run_key

from calibration.cases.case import Measurement
from calibration.runs.store import Store


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return Store.open(tmp_path / "runs.sqlite")


@given(
    makespan_s=st.floats(0.0, allow_infinity=False),
    communication_bytes=st.floats(0.0, allow_infinity=False),
    exposed_s=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=4),
)
def test_the_same_floats_come_back(tmp_path_factory, makespan_s, communication_bytes, exposed_s):
    store = Store.open(tmp_path_factory.mktemp("store") / "runs.sqlite")
    measurement = Measurement(
        makespan_s=makespan_s,
        communication_bytes=communication_bytes,
        exposed_s=tuple(exposed_s),
    )
    store.put(run_key(), measurement)

    again = Store.open(store.path).get(run_key())
    assert again is not None
    assert bits(again) == bits(measurement)


def test_what_was_never_run_is_not_there(store):
    store.put(run_key(1), MEASUREMENT)

    assert store.get(run_key(2)) is None
    assert store.get(replace(run_key(1), backend="unaware")) is None
    assert store.get(replace(run_key(1), aggregation=None)) is None
    assert store.get(replace(run_key(1), version="2")) is None


def test_the_first_result_of_a_run_stays(store):
    store.put(run_key(), MEASUREMENT, {"model": "first"}, created_s=1.0)
    store.put(run_key(), MEASUREMENT, {"model": "second"}, created_s=2.0)
    with pytest.raises(ValueError, match=r"must give what it gave before.*makespan_s=0\.3.*got"):
        store.put(run_key(), replace(MEASUREMENT, makespan_s=math.nextafter(0.3, 1.0) + 1e-15))

    assert bits(store.get(run_key())) == bits(MEASUREMENT)
    assert store.rows()["model"].tolist() == ["first"]


WRITER = """
import sys
from calibration.cases.case import Measurement
from calibration.cases.case_key import RunKey
from calibration.runs.store import Store

path, writer = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()  # until all are
store = Store.open(path)
refused = 0
for number in range(40):
    key = RunKey(case_digest=str(number), backend="aware", aggregation=None, version="1")
    makespan_s = 1.0 + number + (100 * writer if number == 7 else 0)
    found = store.get(key)
    try:
        store.put(key, Measurement(makespan_s=makespan_s, communication_bytes=0.0, exposed_s=()))
    except ValueError as error:
        assert number == 7 and "must give what it gave before" in str(error), error
        refused += 1
print(refused)
"""


def test_processes_may_write_at_once(tmp_path):
    """Four processes make the store and write the same 40 runs; they disagree on one of them."""
    path = tmp_path / "runs.sqlite"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * 4
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    outputs = [writer.communicate() for writer in writers]

    assert [errors for _, errors in outputs] == [""] * 4
    assert sum(int(output) for output, _ in outputs) == 3  # all but the first to write run 7
    rows = Store.open(path).rows()
    written = sorted(makespan_s % 100 for makespan_s in rows["makespan_s"])
    assert written == [float(1 + number) for number in range(40)]


def test_a_writer_that_dies_leaves_nothing_behind(store):
    store.put(run_key(1), MEASUREMENT)
    script = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "c.execute('PRAGMA cache_size = 1'); c.execute('BEGIN EXCLUSIVE'); "
        "c.execute('DELETE FROM runs'); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(store.path)], check=False)

    assert done.returncode == 9
    assert bits(store.get(run_key(1))) == bits(MEASUREMENT)
    store.put(run_key(2), MEASUREMENT)
    assert len(store.rows()) == 2


def test_a_store_can_be_sent_to_other_processes(store):
    pickle.loads(pickle.dumps(store)).put(run_key(), MEASUREMENT)

    assert store.get(run_key()) == MEASUREMENT
