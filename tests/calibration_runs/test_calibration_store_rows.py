"""Rows of the store of runs: listed, exported and pruned."""

import json
import math
from dataclasses import replace
from importlib.util import find_spec

import pandas as pd
import pytest
from stored_runs import MEASUREMENT, run_key

from calibration.runs.store import Store


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return Store.open(tmp_path / "runs.sqlite")


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
