"""The seed comparison, on quick runs."""

import pandas as pd
import pytest
from command_output import error_of
from quick_training import NO_PICTURES

from scenarios.train.compare_seeds import main, seed_table


def test_the_excess_is_of_means_over_the_same_draws():
    """Policy 11 and 21 s, exact 10 and 20 s: 32 / 30 - 1."""
    evaluation = pd.DataFrame(
        {
            "planner": ["policy", "policy", "exact", "exact"],
            "iteration_time_s": [11.0, 21.0, 10.0, 20.0],
        }
    )

    table = seed_table({4: evaluation})

    assert table["seed"].tolist() == [4]
    assert table["iteration_time_s"].tolist() == [16.0]
    assert table["excess_over_exact"].tolist() == pytest.approx([32 / 30 - 1])


def test_seeds_are_trained_once_and_compared(tmp_path, capsys):
    """A run of seconds learns little, so any gap is allowed first, and none then.

    Another seed is another run.
    """
    flags = ["--quick", "--seeds", "0,1", "--out", str(tmp_path)]

    assert main([*flags, "--largest-gap", "10"]) == 0
    assert "Met: the policy takes" in capsys.readouterr().out
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("checkpoint.safetensors")}
    assert main([*flags, *NO_PICTURES, "--largest-gap", "-1"]) == 1
    assert "MISSED" in capsys.readouterr().out

    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len({path.read_bytes() for path in before}) == 2
    assert pd.read_csv(tmp_path / "seeds.csv")["seed"].tolist() == [0, 1]
    assert main(["--seeds", "0,1", "--out", str(tmp_path)]) == 2
    assert "must hold a run with" in capsys.readouterr().err


def test_seeds_must_differ(capsys):
    assert "seeds must be one or more different ones" in error_of(main, ["--seeds", "1,1"], capsys)
