"""The command that trains Hi-PPO across domains: its files, the same bytes again, its errors."""

import csv
from pathlib import Path

import pytest
from command_output import error_of

from agents.hi_ppo.policies import Policies
from scenarios.train.east_west.command import main
from scenarios.train.hi_ppo_files import PLACEMENT_CSV, PLACEMENT_PT, POLICIES_PT

TINY = ("--seed", "7", "--updates", "2", "--worlds", "2", "--samples", "2", "--rounds", "1")


def run(out: Path, *more: str) -> int:
    return main(["placement", *TINY, "--workers", "1", "--out", str(out), *more])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two updates."""
    out = tmp_path_factory.mktemp("hi_ppo") / "run"
    assert run(out) == 0
    return out


def test_a_run_leaves_a_row_an_update_and_policies_that_can_be_loaded(trained):
    with (trained / PLACEMENT_CSV).open(newline="") as file:
        rows = list(csv.DictReader(file))
    policies = Policies.load(trained / POLICIES_PT)

    assert [row["update"] for row in rows] == ["1", "2"]
    assert all(float(row["found_cost"]) <= float(row["mean_cost"]) for row in rows)
    assert policies.moves is None
    assert policies.placement.architecture.num_rounds == 1
    assert policies.training["seed"] == 7


def test_the_same_flags_leave_the_same_bytes_with_any_number_of_workers(trained, tmp_path):
    assert run(tmp_path / "again", "--workers", "2") == 0

    for name in (PLACEMENT_CSV, PLACEMENT_PT, POLICIES_PT, "config.json"):
        assert (tmp_path / "again" / name).read_bytes() == (trained / name).read_bytes(), name


def test_a_placement_policy_that_is_finished_is_not_trained_again(trained):
    before = (trained / PLACEMENT_PT).stat().st_mtime_ns, (trained / POLICIES_PT).read_bytes()

    assert run(trained, "--resume") == 0

    after = (trained / PLACEMENT_PT).stat().st_mtime_ns, (trained / POLICIES_PT).read_bytes()
    assert after == before


def test_a_folder_of_another_training_is_not_gone_on_with(trained, capsys):
    assert run(trained, "--resume", "--imitation", "0.25") == 2
    assert "with --resume, imitation must be 0.5 as in" in capsys.readouterr().err
    assert run(trained) == 2
    assert "already holds files; continue that run with --resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--updates", "0"), "updates must be a whole number from 1 to"),
        (("--seed", "-1"), "seed must be"),
        (("--move-worlds", "-1"), "move_worlds must be a whole number from 1 to"),
        (("--samples", "1"), "samples_per_world must be at least 2, got 1"),
    ],
)
def test_wrong_flags_are_one_line_and_make_no_folder(tmp_path, capsys, flags, message):
    assert message in error_of(main, ["moves", *flags, "--out", str(tmp_path / "run")], capsys)
    assert not (tmp_path / "run").exists()
