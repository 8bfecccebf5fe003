"""The store of runs and the keys that runs are known by."""

import json
import math
import pickle
import sqlite3
import subprocess
import sys
from dataclasses import fields, is_dataclass, replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import cases, plan, unit_workload, world

from calibration.cases.case import Measurement, PlacementCase
from calibration.cases.case_key import (
    RunKey,
    binary_version,
    case_digest,
    case_key,
    describe_case,
    engine_version,
)
from calibration.runs.store import Store
from calibration.runs.store_file import VERSION, connected
from des import Dynamics

MEASUREMENT = Measurement(makespan_s=0.1 + 0.2, communication_bytes=1e9, exposed_s=(1 / 3, -0.0))
NOT_IN_A_RUN = {"dynamics", "price_usd_per_gb", "gpu_price_usd_per_hour"}


def run_key(number=0, *, backend="aware", aggregation="harmonic", version="1"):
    """Make the key of a run of some case."""
    return RunKey(
        case_digest=f"{number:064x}", backend=backend, aggregation=aggregation, version=version
    )


def bits(measurement):
    """Write all figures so that no two floats look the same."""
    figures = (measurement.makespan_s, measurement.communication_bytes, *measurement.exposed_s)
    return [figure.hex() for figure in figures]


def hand_case():
    """Two domains, a link each way, three layers."""
    return PlacementCase(
        topology=world("AB", {"AB": (10.0, 0.5), "BA": (5.0, 0.25)}),
        workload=unit_workload([(1.0, 2.0)] * 3, num_microbatches=4, message_bytes=20.0),
        plan=plan(0, 0, 1),
    )


def number_leaves(value, path=()):
    """Yield where the numbers of a value are, as paths of field names and positions."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, int | float):
        yield path
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from number_leaves(item, (*path, index))
    else:
        for field in fields(value):
            yield from number_leaves(getattr(value, field.name), (*path, field.name))


def with_leaf(value, path, change):
    """Return the value with one of its numbers changed."""
    if not path:
        return change(value)
    first, *rest = path
    if isinstance(value, tuple):
        return (*value[:first], with_leaf(value[first], rest, change), *value[first + 1 :])
    return replace(value, **{first: with_leaf(getattr(value, first), rest, change)})


def next_number(number):
    """Return the next larger number of the same type."""
    return number + 1 if isinstance(number, int) else math.nextafter(number, math.inf)


def map_numbers(value, change):
    """Return the value with all of its floats changed."""
    if isinstance(value, tuple):
        return tuple(map_numbers(item, change) for item in value)
    if is_dataclass(value):
        items = {
            each.name: map_numbers(getattr(value, each.name), change) for each in fields(value)
        }
        return replace(value, **items)
    return change(value) if isinstance(value, float) else value


@st.composite
def drawn_cases(draw):
    """Any case at either granularity."""
    topology, workload, drawn_plan = draw(cases(min_domains=2))
    granularity = draw(st.sampled_from(["domain", "gpu"]))
    return PlacementCase(
        topology=topology, workload=workload, plan=drawn_plan, granularity=granularity
    )


@given(case=drawn_cases(), choice=st.data())
def test_any_number_that_a_run_sees_changes_the_key_by_its_last_bit(case, choice):
    path = choice.draw(st.sampled_from(list(number_leaves(case))))
    try:
        other = with_leaf(case, path, next_number)
    except ValueError:
        assume(False)  # out of range, such as a domain that does not exist

    assert (case_digest(other) == case_digest(case)) == bool(NOT_IN_A_RUN & set(path))


@given(case=drawn_cases(), choice=st.data())
def test_keys_are_equal_for_equal_cases_alone(case, choice):
    """Some of the same few changes go into either copy of a case."""
    paths = [path for path in number_leaves(case) if not NOT_IN_A_RUN & set(path)]
    some = st.lists(st.sampled_from(paths), max_size=2, unique=True)
    pool = choice.draw(some)
    copies = []
    for _ in range(2):
        copy = pickle.loads(pickle.dumps(case))
        try:
            for path in choice.draw(st.sets(st.sampled_from(pool))) if pool else ():
                copy = with_leaf(copy, path, next_number)
        except ValueError:
            assume(False)
        copies.append(copy)
    one, other = copies

    assert (case_digest(one) == case_digest(other)) == (one == other)


@pytest.mark.parametrize(
    "other",
    [
        replace(hand_case(), granularity="gpu"),
        replace(hand_case(), plan=plan(0, 1, 1)),
        replace(hand_case(), plan=plan(0, 0, 1, schedule="gpipe")),
        replace(hand_case(), plan=replace(plan(0, 0, 1), activation_compression=2.0)),
    ],
    ids=["granularity", "placement", "schedule", "compression"],
)
def test_choices_are_part_of_the_key(other):
    assert case_digest(other) != case_digest(hand_case())


def test_transport_and_routes_are_part_of_the_key():
    case = hand_case()
    topology = case.topology
    others = [
        replace(topology, transport=replace(topology.transport, endpoints="one_in_flight")),
        replace(topology, routing_latencies_s=(1.0, 2.0)),
    ]

    digests = {case_digest(replace(case, topology=other)) for other in (topology, *others)}
    assert len(digests) == 3


def test_prices_and_the_law_of_standing_links_are_not():
    case = hand_case()
    priced = replace(
        case.topology,
        domains=tuple(
            replace(domain, gpu_price_usd_per_hour=3.0) for domain in case.topology.domains
        ),
        links=tuple(replace(link, price_usd_per_gb=0.1) for link in case.topology.links),
        dynamics=Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2),
    )

    assert case_digest(replace(case, topology=priced)) == case_digest(case)


@pytest.mark.parametrize("number_type", [np.float64, int])
def test_equal_numbers_of_other_types_have_the_same_key(number_type):
    case = hand_case()
    whole = replace(case, topology=world("AB", {"AB": (10.0, 1.0), "BA": (5.0, 2.0)}))

    assert case_digest(map_numbers(whole, number_type)) == case_digest(whole)


def test_keys_and_versions_are_the_same_in_another_process(tmp_path):
    """Hashes of texts differ from process to process; keys must not."""
    case = hand_case()
    (tmp_path / "case").write_bytes(pickle.dumps(case))
    script = (
        "import pickle, sys; from pathlib import Path; from calibration.cases.case_key import *; "
        "print(case_digest(pickle.loads(Path(sys.argv[1]).read_bytes())), engine_version())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "case")],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "12345", "NUMBA_DISABLE_JIT": "1"},
    )

    assert done.stdout.split() == [case_digest(case), engine_version()]


@pytest.mark.parametrize("field", ["case_digest", "backend", "aggregation", "version"])
def test_every_part_of_a_key_counts(field):
    key = case_key(hand_case(), "aware", None, "1")

    assert key.digest == case_key(hand_case(), "aware", None, "1").digest
    assert replace(key, **{field: "other"}).digest != key.digest


def test_parts_of_a_key_do_not_run_into_each_other():
    one = RunKey(case_digest="0", backend="aware", aggregation="min", version="x")
    other = RunKey(case_digest="0", backend="awaremin", aggregation="", version="x")

    assert one.digest != other.digest


def test_a_binary_is_known_by_its_content(tmp_path):
    first, second, third = (tmp_path / name for name in "abc")
    for path, content in ((first, b"one"), (second, b"one"), (third, b"two")):
        path.write_bytes(content)

    assert binary_version(first) == binary_version(second) != binary_version(third)
    with pytest.raises(ValueError, match="missing: cannot be read: No such file"):
        binary_version(tmp_path / "missing")


def test_a_case_is_described_by_its_figures():
    """Stages of 2 and 1 layers: the larger one has 4/3 of the mean."""
    figures = describe_case(hand_case())

    assert figures["num_crossings"] == 1
    assert figures["num_used_domains"] == figures["num_domains"] == 2
    assert figures["imbalance_factor"] == pytest.approx(4 / 3)
    assert figures["placement"] == "0*2,1*1"


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


def test_rows_have_keys_figures_and_notes(store):
    assert store.rows().empty
    store.put(run_key(2, backend="pairwise", aggregation=None), MEASUREMENT, created_s=20.0)
    store.put(run_key(1), MEASUREMENT, {"model": "llama", "num_layers": 3}, created_s=10.0)
    rows = store.rows()

    assert rows["created_s"].tolist() == [10.0, 20.0]
    assert rows["key"].tolist()[0] == run_key(1).digest
    assert rows["backend"].tolist() == ["aware", "pairwise"]
    assert rows["model"][0] == "llama"
    assert pd.isna(rows["model"][1])
    assert rows["exposed_s"][0] == MEASUREMENT.exposed_s


@pytest.mark.parametrize(
    ("meta", "named"),
    [
        ({"makespan_s": 1.0}, "'makespan_s': 1.0"),
        ({"shape": (1, 2)}, r"'shape': \(1, 2\)"),
        ({"factor": math.nan}, "'factor': nan"),
    ],
)
def test_notes_that_cannot_be_kept_are_refused(store, meta, named):
    with pytest.raises(ValueError, match=f"meta must hold .* got {named}"):
        store.put(run_key(), MEASUREMENT, meta)

    assert store.get(run_key()) is None


def test_csv_holds_the_same_floats(store, tmp_path):
    for number in range(20):
        makespan_s = 0.1 * number / 3
        store.put(
            run_key(number), replace(MEASUREMENT, makespan_s=makespan_s), created_s=float(number)
        )
    store.export(tmp_path / "runs.csv")
    frame = pd.read_csv(tmp_path / "runs.csv")

    assert frame["makespan_s"].tolist() == store.rows()["makespan_s"].tolist()
    assert tuple(json.loads(frame["exposed_s"][0])) == MEASUREMENT.exposed_s


@pytest.mark.skipif(find_spec("pyarrow") is not None, reason="pyarrow is installed")
def test_parquet_without_its_package_is_refused(store, tmp_path):
    with pytest.raises(ValueError, match="needs the package pyarrow, which is not installed"):
        store.export(tmp_path / "runs.parquet")

    assert not (tmp_path / "runs.parquet").exists()


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_parquet_holds_the_same_floats(store, tmp_path):
    store.put(run_key(), MEASUREMENT)
    store.export(tmp_path / "runs.parquet")

    frame = pd.read_parquet(tmp_path / "runs.parquet")
    assert frame["makespan_s"].tolist() == [MEASUREMENT.makespan_s]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("runs.xlsx", "must end in .csv or .parquet"),
        ("none/runs.csv", "cannot be written: No such file"),
    ],
)
def test_exports_that_cannot_be_written_are_refused(store, tmp_path, target, reason):
    with pytest.raises(ValueError, match=reason):
        store.export(tmp_path / target)


@pytest.mark.parametrize(
    ("criteria", "left"),
    [
        ({"created_before_s": 2.0}, [2, 3, 4, 5]),
        ({"backend": "aware"}, [1, 3, 5]),
        ({"keep_newest": 2}, [4, 5]),
        ({"keep_newest": 0}, []),
        ({"backend": "aware", "keep_newest": 1}, [1, 3, 4, 5]),
        ({"backend": "pairwise", "created_before_s": 3.0}, [0, 2, 3, 4, 5]),
        ({"keep_newest": 5, "created_before_s": 3.0}, [1, 2, 3, 4, 5]),
        ({"keep_newest": 9}, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_pruning_removes_what_all_criteria_apply_to(store, criteria, left):
    """Six runs, one a second; those of even number are of `aware`, the others of `pairwise`."""
    for number in range(6):
        backend = "pairwise" if number % 2 else "aware"
        store.put(run_key(number, backend=backend), MEASUREMENT, created_s=float(number))

    assert store.prune(**criteria) == 6 - len(left)
    created = store.rows()["created_s"].tolist()
    assert created == [float(number) for number in left]


def test_pruning_everything_by_mistake_is_refused(store):
    with pytest.raises(ValueError, match="prune must be given an age, a backend or a number"):
        store.prune()
    with pytest.raises(ValueError, match="keep_newest must be a whole number"):
        store.prune(keep_newest=-1)


def test_pruning_gives_room_back(store):
    for number in range(50):
        store.put(run_key(number), MEASUREMENT, {"note": "x" * 1000})
    before = store.path.stat().st_size
    store.prune(keep_newest=1)

    assert store.path.stat().st_size < before / 4


def test_a_store_of_a_newer_version_is_refused(store):
    store.put(run_key(), MEASUREMENT)
    with connected(store.path, "rw") as connection:
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
    with connected(database, "rwc") as connection:
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
        with connected(store.path, "rw") as connection:
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
