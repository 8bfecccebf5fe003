"""TorchTitan's throughput, which is not judged, and INTELLECT-1's utilisation, which is."""

import json
import shutil

import pytest

from scenarios.reproduce.command import main
from scenarios.reproduce.measured import SHIPPED, predict_folder
from scenarios.reproduce.measured_outer_steps import OuterRow, OuterSetup, predicted_percent
from scenarios.reproduce.measured_tables import table_bounds, table_frame


def rows_of(folder, name, *rows):
    """A file without setup."""
    path = folder / f"{name}_unseen.json"
    path.write_text(json.dumps({"source": "a test", "rows": rows}))
    return path


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sharing")
    for name in ("torchtitan", "intellect1"):
        shutil.copy(SHIPPED / f"{name}.json", folder)
    return predict_folder(folder)


def test_an_outer_step_of_103_s_after_38_minutes_by_hand(tables):
    """2280 of 2383 s; the scenario without an exchange says nothing of the rule."""
    row = OuterRow(scenario="USA", inner_min=38.0, all_reduce_s=103.0, util=95.7)

    found = predicted_percent(row, OuterSetup(steps_between=100, num_parameters=10e9))
    assert found == pytest.approx(100.0 * 2280.0 / 2383.0)
    frame = table_frame(tables).set_index("table")
    assert frame.loc["intellect1", "predicted"] == pytest.approx(found)


def test_only_what_compares_is_judged(tables):
    """Ours lacks Float8, so it must be slower; the note says why there is no bound."""
    bounds, unjudged = table_bounds(tables)

    (bound,) = bounds
    assert "intellect1" in str(bound)
    assert len(unjudged) == 2
    frame = table_frame(tables)
    (error,) = frame.loc[frame["quantity"] == "tokens_per_gpu_s", "error_percent"]
    assert -15.0 < error < -10.0
    assert any(
        note.startswith("torchtitan: not comparable") for table in tables for note in table.notes
    )


def test_other_rows_take_the_shipped_setup(tmp_path):
    row = {
        "model": "llama3_8b",
        "schedule": "1f1b",
        "tokens_per_s_per_gpu": 1000,
        "memory_gib": None,
    }
    rows_of(tmp_path, "torchtitan", row)
    rows_of(
        tmp_path, "intellect1", {"scenario": "a", "inner_min": 10, "all_reduce_s": 60, "util": 90.9}
    )

    found = table_frame(predict_folder(tmp_path))
    assert found["quantity"].tolist() == ["tokens_per_gpu_s", "compute_utilisation_percent"]
    assert main(["measured", "--cases", str(tmp_path), "--out", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        (
            "torchtitan",
            {"model": "llama3_8b", "schedule": "gpipe"},
            r"rows\[0\].schedule must be one of 1f1b, interleaved_1f1b; got 'gpipe'",
        ),
        (
            "intellect1",
            {"scenario": "a", "inner_min": -1, "all_reduce_s": 60, "util": 90},
            r"rows\[0\].*inner_min",
        ),
    ],
)
def test_wrong_rows_are_refused(name, row, message, tmp_path):
    rows_of(tmp_path, name, row)

    with pytest.raises(ValueError, match=message):
        predict_folder(tmp_path)
