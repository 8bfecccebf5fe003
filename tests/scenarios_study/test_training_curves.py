"""Training curves drawn from logs."""

from pathlib import Path

import numpy as np
import pytest
from command_output import assert_refused

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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((content, "/log.csv") for content in ("", HEADER + "\n", "update,cost\n1,2\n")),
        (HEADER + "\n1,1,1,1,1\n", "equal length"),
    ],
)
def test_what_is_no_log_or_of_another_length_is_one_line(content, message, tmp_path, capsys):
    (tmp_path / "log.csv").write_text(content)
    whole, out = log(tmp_path / "two.csv", "1,1,1,1,1", "2,1,1,1,1"), tmp_path / "one.png"
    flags = ["--logs", f"{tmp_path / 'log.csv'},{whole}", "--out", str(out)]

    assert_refused(main, flags, message, capsys, unwritten=out)


def test_the_logs_of_five_seeds_are_shipped_and_drawn_unless_told(tmp_path, capsys):
    assert main(["--out", str(tmp_path / "curves.png")]) == 0

    told = capsys.readouterr().out
    assert told.count("800 updates") == 5
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
