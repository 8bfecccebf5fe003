"""The published bandwidths of Streaming DiLoCo are hit within a step of their grid."""

import json
import math

import pandas as pd
import pytest

from scenarios.reproduce.cases import PUBLISHED, read_cases
from scenarios.reproduce.command import main
from scenarios.reproduce.diloco import (
    GRID_GBIT_PER_S,
    SHIPPED,
    DiLoCoRow,
    compare,
    nearest_grid_point,
    reproduce,
)

SCALING_LAWS = PUBLISHED / "diloco_scaling.json"
GRID_STEP = GRID_GBIT_PER_S[1] / GRID_GBIT_PER_S[0]


def cell(grid_point):
    """Return a grid point as the paper prints it."""
    return round(float(GRID_GBIT_PER_S[grid_point]), 1)


def row(**changes):
    """Two gigabytes on the wire, steps of 3 s of which 2 s are the backward pass.

    Every step: 50 % at 3 s exposed, so 5 s on the wire, so 3.2 Gbit/s; the next grid points are
    2.95 (index 18) and 3.56 (19). DiLoCo: (300 + 2) s at 50 %, so 0.053 Gbit/s, below the grid,
    and 300/99 + 2 s at 99 %, so 3.18 Gbit/s.
    """
    values = {
        "model": "toy",
        "num_parameters": 1e9,
        "num_layers": 12,
        "step_time_s": 3.0,
        "steps_between_synchronisations": 100,
        "compute_utilisation_percent": [50, 99],
        "bandwidth_gbit_per_s": {"diloco_h100": [cell(0), cell(19)]},
    }
    return values | changes


def write_rows(folder, *rows, **targets):
    """Write rows to a file whose target for the bias is wide, unless another is given."""
    path = folder / "rows.json"
    content = {"source": "by hand", "targets": {"mean_grid_steps": 50.0} | targets, "rows": rows}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def run(folder, *rows, **targets):
    path = write_rows(folder, *rows, **targets)
    code = main(["diloco", "--cases", str(path), "--figures", "", "--out", str(folder / "out")])
    return code, pd.read_csv(folder / "out" / "table.csv")


def test_the_lowest_sufficient_grid_point_by_hand(tmp_path):
    code, table = run(tmp_path, row())

    assert code == 0
    assert list(table["grid_steps_above"]) == [0, 0]
    assert list(table["ours_gbit_per_s"]) == [GRID_GBIT_PER_S[0], GRID_GBIT_PER_S[19]]


def test_the_steps_between_synchronisations_are_those_of_the_row(tmp_path):
    """DiLoCo over one step is data parallelism: 3.2 Gbit/s for 50 %."""
    bandwidths = {"diloco_h100": [cell(19)], "data_parallel": [cell(19)]}
    one = row(
        steps_between_synchronisations=1,
        compute_utilisation_percent=[50],
        bandwidth_gbit_per_s=bandwidths,
    )

    code, table = run(tmp_path, one)

    assert code == 0
    assert list(table["grid_steps_above"]) == [0, 0]


@pytest.mark.parametrize(("shift", "code"), [(-2, 1), (-1, 0), (1, 0), (2, 1)])
def test_a_neighbouring_grid_point_is_right_and_the_next_is_wrong(shift, code, tmp_path):
    shifted = row(
        compute_utilisation_percent=[99],
        bandwidth_gbit_per_s={"diloco_h100": [cell(19 + shift)]},
    )

    found_code, table = run(tmp_path, shifted)

    assert found_code == code
    assert list(table["grid_steps_above"]) == [-shift]


@pytest.mark.parametrize(("wrong", "code"), [(1, 0), (2, 1)])
def test_the_share_of_right_cells_is_held_against_its_target(wrong, code, tmp_path, capsys):
    bandwidths = [cell(19)] * (10 - wrong) + [cell(22)] * wrong
    ten = row(
        compute_utilisation_percent=[99] * 10, bandwidth_gbit_per_s={"diloco_h100": bandwidths}
    )

    assert run(tmp_path, ten, cells_within_a_grid_step=0.9)[0] == code

    verdict = "met" if code == 0 else "FAILED"
    assert f"{verdict}: rows, cells on the published" in capsys.readouterr().out


@pytest.mark.parametrize(("shift", "side"), [(1, "below"), (-1, "above")])
def test_the_mean_difference_is_held_against_its_target(shift, side, tmp_path, capsys):
    """Of four cells one is a grid step off."""
    cells = [cell(19)] * 3 + [cell(19 + shift)]
    four = row(compute_utilisation_percent=[99] * 4, bandwidth_gbit_per_s={"diloco_h100": cells})

    assert run(tmp_path, four, mean_grid_steps=0.26)[0] == 0
    assert run(tmp_path, four, mean_grid_steps=0.24)[0] == 1
    told = f"rows, mean of grid steps that ours lies {side}: 0.25, allowed at most 0.24"
    assert f"FAILED: {told}" in capsys.readouterr().out


def test_tables_of_several_files_are_judged_one_by_one(tmp_path, capsys):
    right, wrong = tmp_path / "right.json", tmp_path / "wrong.json"
    write_rows(tmp_path, row()).rename(right)
    write_rows(tmp_path, row(bandwidth_gbit_per_s={"diloco_h100": [cell(9)] * 2})).rename(wrong)

    assert main(["diloco", "--cases", f"{right},{wrong}", "--out", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr().out
    assert "met: right, cells" in printed
    assert "FAILED: wrong, cells" in printed
    assert (
        list(pd.read_csv(tmp_path / "out" / "table.csv")["table"]) == ["right"] * 2 + ["wrong"] * 2
    )


def test_files_of_one_name_end_with_code_two(tmp_path, capsys):
    path = write_rows(tmp_path, row())

    assert main(["diloco", "--cases", f"{path},{path}", "--out", str(tmp_path / "out")]) == 2
    assert "cases: names of files must differ, got rows, rows" in capsys.readouterr().err


def test_a_utilisation_that_no_grid_point_reaches_is_a_wrong_cell(tmp_path):
    """The tail of one layer alone, 4e14 bytes / 12 at 125 GB/s, is longer than a step."""
    huge = row(num_parameters=2e14, bandwidth_gbit_per_s={"data_parallel": [500.0, 1000.0]})

    code, table = run(tmp_path, huge)

    assert code == 1
    assert table["ours_gbit_per_s"].isna().all()
    assert not table["within_a_grid_step"].any()


def test_null_is_as_absent(tmp_path, capsys):
    modes = {"diloco_h100": [None, cell(19)], "data_parallel": None, "streaming": [None, None]}

    code, table = run(
        tmp_path, row(bandwidth_gbit_per_s={"streaming": None}), row(bandwidth_gbit_per_s=modes)
    )

    assert code == 0
    assert list(table["mode"]) == ["diloco_h100"]
    assert list(table["compute_utilisation_percent"]) == [99]
    assert "of 1: 100.0%" in capsys.readouterr().out


def test_nothing_of_cells_that_no_grid_point_reaches_is_averaged(tmp_path, capsys):
    huge = row(num_parameters=2e14, bandwidth_gbit_per_s={"data_parallel": [None, 1000.0]})

    assert run(tmp_path, huge)[0] == 1
    printed = capsys.readouterr().out
    assert "mean of grid steps" not in printed
    assert "nan" not in printed.lower()


@pytest.mark.parametrize("figures", [None, [None, None]])
def test_a_file_without_any_figure_ends_with_code_two(figures, tmp_path, capsys):
    path = write_rows(tmp_path, row(bandwidth_gbit_per_s={"streaming": figures}))

    assert main(["diloco", "--cases", str(path), "--out", str(tmp_path / "out")]) == 2
    assert f"{path}: rows must have a figure in bandwidth_gbit_per_s" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("grid_point", [10, 20, 30, 49])
def test_published_figures_are_located_by_ratio(grid_point):
    gbit_per_s = GRID_GBIT_PER_S[grid_point]
    just_below_the_middle = gbit_per_s * math.sqrt(GRID_STEP) * 0.999

    assert nearest_grid_point(cell(grid_point)) == grid_point
    assert nearest_grid_point(just_below_the_middle) == grid_point


def test_compute_heavy_models_need_less(tmp_path):
    """Longer steps, fewer parameters or fewer bits never need more bandwidth."""
    modes = {"streaming_overlap": [10.0] * 2, "streaming_overlap_fp4": [10.0] * 2}
    rows = [
        row(num_parameters=1e11, bandwidth_gbit_per_s=modes),
        row(num_parameters=1e11, bandwidth_gbit_per_s=modes, step_time_s=6.0),
        row(num_parameters=2e10, bandwidth_gbit_per_s=modes),
    ]

    table = compare(read_cases(write_rows(tmp_path, *rows), DiLoCoRow, SHIPPED).rows)

    ours = table["ours_gbit_per_s"].to_numpy().reshape(3, 2, 2)
    assert (ours[1:] < ours[0]).all()
    assert (ours[:, 1] < ours[:, 0]).all()


def test_the_shipped_tables_are_as_near_as_the_page_on_reproduction_says():
    tables = {path.stem: read_cases(path, DiLoCoRow, SHIPPED) for path in (SHIPPED, SCALING_LAWS)}

    reproduction = reproduce(tables)

    for name, cases in tables.items():
        frame = reproduction.frame[reproduction.frame["table"] == name]
        assert len(frame) == sum(
            len(cells) for row in cases.rows for cells in row.published.values()
        )
    assert [bound.measured for bound in reproduction.bounds] == ["100.0%", "0.70", "51.3%", "1.49"]
    assert [bound.target_met for bound in reproduction.bounds] == [True, False, False, False]
    assert all(bound.met for bound in reproduction.bounds)


def test_two_cells_of_the_scaling_laws_cannot_both_follow_from_an_amount_of_data():
    """Half of the time exposed, at a period of 50 or 300 steps: (period + 2/3) steps on the wire.

    The grid point below is too slow, so the amounts lie between bandwidth and previous grid point.
    """
    cells = {
        row.steps_between_synchronisations: (row, row.published["diloco_h100"][0][1])
        for row in read_cases(SCALING_LAWS, DiLoCoRow, SHIPPED).rows
        if row.model.startswith("DeepSeek") and "diloco_h100" in row.published
    }

    def gbit(steps, grid_steps):
        row, gbit_per_s = cells[steps]
        point = nearest_grid_point(gbit_per_s) - grid_steps
        return GRID_GBIT_PER_S[point] * (steps + 2 / 3) * row.step_time_s

    assert gbit(50, 0) < 0.95 * gbit(300, 1)


def test_altered_published_figures_fail_the_bound(tmp_path):
    content = json.loads(SHIPPED.read_text(encoding="utf-8"))
    for altered in content["rows"]:
        for name, bandwidths in altered["bandwidth_gbit_per_s"].items():
            altered["bandwidth_gbit_per_s"][name] = [figure / 2 for figure in bandwidths]

    assert run(tmp_path, *content["rows"])[0] == 1


def test_the_same_cases_give_the_same_bytes(tmp_path):
    written = []
    for name in ("one", "two"):
        assert main(["diloco", "--cases", str(SHIPPED), "--out", str(tmp_path / name)]) == 0
        written.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})

    assert written[0] == written[1]
    assert sorted(written[0]) == ["picture.png", "report.html", "table.csv", "table.md"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_layers": 0}, r"rows[0].num_layers"),
        ({"compute_utilisation_percent": [50, 100]}, "rows[0].compute_utilisation_percent[1]"),
        ({"compute_utilisation_percent": []}, "rows[0].compute_utilisation_percent"),
        ({"bandwidth_gbit_per_s": {}}, "rows[0].bandwidth_gbit_per_s"),
        ({"bandwidth_gbit_per_s": {"gossip": [1.0, 2.0]}}, "keys of data_parallel, "),
        ({"bandwidth_gbit_per_s": {"data_parallel": [1.0]}}, "must have 2 numbers"),
        ({"bandwidth_gbit_per_s": {"data_parallel": [1.0, 2e3]}}, "grid of 0.1 to 1000"),
        ({"num_replica": 2}, "num_replica must be text or one of the known fields"),
    ],
)
def test_bad_rows_end_with_code_two_and_leave_no_files(changes, message, tmp_path, capsys):
    path = write_rows(tmp_path, row(**changes))

    assert main(["diloco", "--cases", str(path), "--out", str(tmp_path / "out")]) == 2

    error = capsys.readouterr().err
    assert str(path) in error
    assert message in error
    assert not (tmp_path / "out").exists()
