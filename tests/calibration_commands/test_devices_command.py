"""`python -m calibration devices`: what it prints and writes, and bad input in one line."""

import csv

import pytest
from command_output import assert_refused

from calibration.commands.main import main
from calibration.measured.collective_table import COLUMNS, SHIPPED_TABLE
from des.devices.figures_file import SHIPPED, read_link_figures

QUICK = ("--bootstrap", "2", "--halves", "2")


def test_the_shipped_table_gives_the_shipped_figures(tmp_path, capsys):
    assert main(["devices", *QUICK, "--out", str(tmp_path)]) == 0

    shown = capsys.readouterr().out
    assert "56 cells of a100_dgx" in shown
    assert "a100_dgx, 16 GPUs, 8 each, 8 MiB: 2.189 ms, 81% above the line" in shown
    assert "networks.a100_dgx.step_s: " in shown
    written = read_link_figures(tmp_path / "link_figures.json")
    shipped = read_link_figures(SHIPPED)
    for name, own in shipped.models.items():
        assert written.models[name].nvlink_fraction == pytest.approx(own.nvlink_fraction, rel=0.01)
    with (tmp_path / "cells.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 56
    assert sum(bool(row["unexplained"]) for row in rows) == 4
    for row in rows:
        error = float(row["predicted_ms"]) / float(row["measured_ms"]) - 1
        assert error == pytest.approx(float(row["error"]), abs=1e-4)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a100_dgx,2,2,1048576,nan", "table.csv: line 2: median_ms: .*finite"),
        ("a100_dgx,2,2,1048576,-1", "table.csv: line 2: median_ms: .*greater than 0"),
        ("a100_dgx,5,2,1048576,1", "line 2.workers: must be a multiple of gpus_per_node"),
        ("a100,2,2,1048576,1", "line 2.node: unknown kind 'a100'"),
    ],
)
def test_bad_tables_are_refused_in_one_line(line, message, tmp_path, capsys):
    table, out = tmp_path / "table.csv", tmp_path / "out"
    table.write_text(f"{','.join(COLUMNS)}\n{line}\n")

    argv = ["devices", "--runs", str(table), "--out", str(out)]
    assert_refused(main, argv, f".*{message}", capsys, unwritten=out)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--folds", "1"), "--folds must be at least 2 and at most the 56 cells, got 1"),
        (("--halves", "0"), "--halves must be at least 1, got 0"),
        (("--bootstrap", "0"), "--bootstrap must be at least 1, got 0"),
        (("--least-bytes", "1e12"), "--runs must have at least 2 cells"),
    ],
)
def test_bad_flags_are_refused_in_one_line(flags, message, tmp_path, capsys):
    out = tmp_path / "out"
    argv = ["devices", "--runs", str(SHIPPED_TABLE), *flags, "--out", str(out)]

    assert_refused(main, argv, message, capsys, unwritten=out)
