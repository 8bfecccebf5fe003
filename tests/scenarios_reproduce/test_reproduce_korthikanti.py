"""Times and memory of Korthikanti et al.: shipped rows, files of others, the paper's formulas."""

import json

import pytest
from command_output import error_of

from scenarios.reproduce.command import main
from scenarios.reproduce.measured import SHIPPED
from scenarios.reproduce.measured_korthikanti import predict_table
from scenarios.reproduce.measured_tables import table_bounds

FILE = SHIPPED / "korthikanti.json"


@pytest.fixture(scope="module")
def table():
    return predict_table(FILE, FILE)


def file_of(folder, **changes):
    """A file without setup of the first shipped row."""
    row = json.loads(FILE.read_text())["rows"][0] | changes
    path = folder / "korthikanti_unseen.json"
    path.write_text(json.dumps({"source": "a test", "rows": [row]}))
    return path


def test_all_figures_of_both_models_are_predicted(table):
    assert [cell.run for cell in table.cells if cell.quantity == "iteration_s"] == [
        "22B full", "22B selective_sp", "530B full", "530B selective_sp",
    ]  # fmt: skip
    bounds, unjudged = table_bounds([table])
    assert (len(bounds), unjudged) == (3, ())
    assert all(bound.met for bound in bounds)


def test_memory_is_that_of_the_formulas(table):
    """Interleaving holds 139 layers of the 530B model on the first device, as in the paper."""
    found = {
        cell.run: cell.predicted * 2**30
        for cell in table.cells
        if cell.quantity == "activations_gib"
    }
    size = 2048 * 20480
    assert found["530B none"] == pytest.approx(139 * size * (10 + 24 / 8 + 5 * 128 / 10 / 8))
    assert found["530B selective_sp"] == pytest.approx(139 * size * 34 / 8)
    size = 4 * 2048 * 6144
    assert found["22B none"] == pytest.approx(48 * size * (10 + 24 / 8 + 5 * 64 / 3 / 8))
    assert "46.26 GiB with what else" in table.notes[0]


def test_files_without_setup_take_the_shipped_one_and_null_is_left_out(tmp_path, table):
    path = file_of(
        tmp_path,
        measured_iteration_s={"full": 1.42, "selective_sp": None},
        measured_memory_gib={"activations_none": 59.25},
    )
    found = predict_table(path, FILE).cells

    assert [cell.predicted for cell in found] == [
        table.cells[0].predicted,
        table.cells[2].predicted,
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"global_batch": 3}, "rows[0].global_batch must be a multiple of"),
        ({"pipeline": 0}, "rows[0].pipeline"),
        ({"interleaving": 7, "pipeline": 8}, "rows[0]."),
        ({"measured_iteration_s": {"partial": 1.0}}, "rows[0].measured_iteration_s"),
    ],
)
def test_impossible_rows_are_one_line(tmp_path, capsys, changes, message):
    file_of(tmp_path, **changes)

    assert message in error_of(main, ["measured", "--cases", str(tmp_path)], capsys)
