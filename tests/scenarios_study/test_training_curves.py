"""Training curves drawn from logs."""

from pathlib import Path

import numpy as np
import pytest

from scenarios.study.training_curves import main, read_log, smoothed, training_curves

HEADER = "update,mean_cost,found_cost,depth_regret,entropy"


def log(path: Path, *rows: str) -> Path:
    """A log of some updates."""
    path.write_text("\n".join((HEADER, *rows)) + "\n")
    return path


def test_the_excess_is_the_cost_of_drawn_orders_less_that_of_the_best_found(tmp_path):
    found = read_log(log(tmp_path / "log.csv", "1,0.75,0.5,0.1,2.0", "2,0.5,0.5,0.1,1.0"))

    assert found["excess"].tolist() == [0.25, 0.0]


def test_smoothing_keeps_a_constant_and_the_mean_of_a_window():
    assert smoothed(np.full(60, 3.0)).tolist() == pytest.approx([3.0] * 60)
    assert smoothed(np.arange(1.0, 51.0))[-1] == pytest.approx(np.arange(26.0, 51.0).mean())


def test_a_picture_of_all_seeds_is_drawn_and_twice_the_same(tmp_path, capsys):
    logs = [
        log(tmp_path / f"{seed}.csv", f"1,0.{seed + 5},0.3,0.1,2.0", "2,0.5,0.4,0.1,1.0")
        for seed in range(3)
    ]
    flags = ["--logs", ",".join(map(str, logs)), "--out"]

    assert main([*flags, str(tmp_path / "one.png")]) == 0
    assert main([*flags, str(tmp_path / "other.png")]) == 0

    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "other.png").read_bytes()
    assert "2 updates, excess 0.2" in capsys.readouterr().out
    drawn = training_curves({str(path): read_log(path) for path in logs}).panels[0].marks
    assert len(drawn) == 4
    assert drawn[-1].y[0] == pytest.approx((0.2 + 0.3 + 0.4) / 3)


@pytest.mark.parametrize("content", ["", HEADER + "\n", "update,cost\n1,2\n"])
def test_what_is_no_log_is_one_line_that_names_the_file(tmp_path, capsys, content):
    path = tmp_path / "log.csv"
    path.write_text(content)

    assert main(["--logs", str(path), "--out", str(tmp_path / "one.png")]) == 2
    assert str(path) in capsys.readouterr().err
    assert not (tmp_path / "one.png").exists()


def test_logs_of_different_lengths_are_refused(tmp_path, capsys):
    one = log(tmp_path / "one.csv", "1,1,1,1,1")
    two = log(tmp_path / "two.csv", "1,1,1,1,1", "2,1,1,1,1")

    assert main(["--logs", f"{one},{two}", "--out", str(tmp_path / "one.png")]) == 2
    assert "equal length" in capsys.readouterr().err


def test_the_logs_of_five_seeds_are_shipped_and_drawn_unless_told(tmp_path, capsys):
    assert main(["--out", str(tmp_path / "curves.png")]) == 0

    told = capsys.readouterr().out
    assert told.count("800 updates") == 5
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
