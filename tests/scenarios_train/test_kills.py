"""Runs that are killed in the middle continue to the bytes of undisturbed ones."""

import random
import shutil
from pathlib import Path

import pandas as pd
import pytest
from killed_runs import killed_after_rows, killed_at
from quick_training import SMALL_JOB
from training_runs import assert_same_results, interrupted

from agents.ppo.checkpoint import load_checkpoint
from scenarios import east_west_train, sweep
from scenarios.frame.run_folder import RunFolder
from scenarios.train.hi_ppo_files import (
    MOVES_CSV,
    MOVES_PT,
    PLACEMENT_CSV,
    PLACEMENT_PT,
    POLICIES_PT,
)

TRAIN = [
    *("--policy", "flat", "--quick", "--steps", "2048", "--evaluation-draws", "2"),
    *SMALL_JOB,
    *("--calibration", "none", "--workers", "1"),
]
"""16 updates; checkpoints of the 10th and the last."""

HI_PPO = [
    *("moves", "--seed", "7", "--updates", "12", "--worlds", "2", "--samples", "2"),
    *("--rounds", "1"),
    *("--move-worlds", "0", "--workers", "1"),
]
"""12 updates; checkpoints of the 10th and the last."""

WITH_MOVES = [*HI_PPO[:-3], "1", "--move-draws", "1", "--move-updates", "12"]
HI_PPO_FILES = ("config.json", PLACEMENT_CSV, PLACEMENT_PT, POLICIES_PT)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed training."""
    folder = tmp_path_factory.mktemp("train") / "run"
    assert east_west_train.main([*TRAIN, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def undisturbed_hi_ppo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed training of Hi-PPO."""
    folder = tmp_path_factory.mktemp("hi_ppo") / "run"
    assert east_west_train.main([*HI_PPO, "--out", str(folder)]) == 0
    return folder


def flags_for(folder: Path, flags: list[str], *, repeated: bool) -> list[str]:
    """Flags that continue in a folder, or begin there; resuming may repeat the flags."""
    place = ["--out", str(folder)]
    if not (folder / "config.json").exists():
        return [*flags, *place]
    return [*(flags if repeated else []), "--resume", *place]


def test_a_training_that_is_killed_again_and_again_ends_with_the_same_bytes(
    undisturbed, tmp_path, capsys
):
    """Before its record is in place, after three rows, and after rows beyond a checkpoint."""
    run, module = tmp_path / "run", "scenarios.east_west_train"

    assert killed_at(5, module, flags_for(run, TRAIN, repeated=False), run)
    assert not (run / "config.json").exists()
    log = run / "metrics.csv"
    for num_rows in (3, 12):
        flags = flags_for(run, TRAIN, repeated=False)
        assert killed_after_rows(num_rows, log, module, flags)
    update = load_checkpoint(run / "checkpoint.safetensors")["update_count"]
    num_rows = log.read_text().count("\n") - 1
    capsys.readouterr()

    assert east_west_train.main(["--resume", "--out", str(run)]) == 0

    assert_same_results(undisturbed, run)
    if num_rows > update:
        said = (
            f"{num_rows - update} rows after the checkpoint, which is of update {update}, are cut"
        )
        assert said in " ".join(capsys.readouterr().out.split())


def test_ctrl_c_leaves_a_run_that_resumes_to_the_same_bytes(undisturbed, tmp_path):
    """Interrupted like a user would, then resumed."""
    stopped = tmp_path / "stopped"

    code, shown = interrupted(TRAIN, stopped)

    assert code == 130
    assert f"--resume --out {stopped}" in shown
    assert not (stopped / "evaluation.csv").exists()
    assert east_west_train.main(["--resume", "--out", str(stopped)]) == 0
    assert_same_results(undisturbed, stopped)


@pytest.mark.soak
@pytest.mark.parametrize("place", range(1, 120, 3))
def test_a_training_that_is_killed_anywhere_goes_on(place, undisturbed, tmp_path):
    run = tmp_path / "run"
    killed_at(place, "scenarios.east_west_train", flags_for(run, TRAIN, repeated=False), run)

    assert east_west_train.main(flags_for(run, TRAIN, repeated=False)) == 0

    assert_same_results(undisturbed, run)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(8))
def test_a_training_survives_any_number_of_kills(seed, undisturbed, tmp_path):
    run, rng = tmp_path / "run", random.Random(seed)
    for _ in range(6):
        flags = flags_for(run, TRAIN, repeated=False)
        killed_at(rng.randrange(1, 80), "scenarios.east_west_train", flags, run)

    assert east_west_train.main(flags_for(run, TRAIN, repeated=False)) == 0

    assert_same_results(undisturbed, run)


def assert_same_hi_ppo(one: Path, other: Path, names: tuple[str, ...] = HI_PPO_FILES) -> None:
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.fixture
def killed_hi_ppo(tmp_path) -> Path:
    """A training of Hi-PPO with a checkpoint of update 10 and 11 rows."""
    run = tmp_path / "run"
    module, flags = "scenarios.east_west_train", [*HI_PPO, "--out", str(run)]
    assert killed_after_rows(11, run / PLACEMENT_CSV, module, flags)
    if load_checkpoint(run / PLACEMENT_PT)["update"] != 10:
        pytest.skip("the last checkpoint was written before the process could be killed")
    return run


def test_a_training_of_hi_ppo_goes_on_from_the_update_of_its_checkpoint(
    undisturbed_hi_ppo, killed_hi_ppo, capsys
):
    """Also where the log has all rows, as a full disk leaves it: older weights are not the end."""
    shutil.copyfile(undisturbed_hi_ppo / PLACEMENT_CSV, killed_hi_ppo / PLACEMENT_CSV)
    capsys.readouterr()

    assert east_west_train.main([*HI_PPO, "--resume", "--out", str(killed_hi_ppo)]) == 0

    said = " ".join(capsys.readouterr().out.split())
    assert "2 rows after the checkpoint, which is of update 10, are cut" in said
    assert_same_hi_ppo(undisturbed_hi_ppo, killed_hi_ppo)


def test_a_log_that_ends_before_the_checkpoint_is_one_error(undisturbed_hi_ppo, tmp_path, capsys):
    run = Path(shutil.copytree(undisturbed_hi_ppo, tmp_path / "run"))
    lines = (run / PLACEMENT_CSV).read_text().splitlines(keepends=True)
    (run / PLACEMENT_CSV).write_text("".join(lines[:9]))

    assert east_west_train.main([*HI_PPO, "--resume", "--out", str(run)]) == 2

    assert capsys.readouterr().err == (
        f"error: {run / PLACEMENT_CSV}: must have a row for each of the 12 updates of the "
        "checkpoint, got 8\n"
    )


@pytest.mark.soak
@pytest.mark.parametrize("place", range(1, 40))
def test_a_training_of_hi_ppo_that_is_killed_anywhere_goes_on(place, undisturbed_hi_ppo, tmp_path):
    run = tmp_path / "run"
    killed_at(place, "scenarios.east_west_train", [*HI_PPO, "--out", str(run)], run)

    assert east_west_train.main(flags_for(run, HI_PPO, repeated=True)) == 0

    assert_same_hi_ppo(undisturbed_hi_ppo, run)


@pytest.mark.soak
def test_the_moves_of_hi_ppo_go_on_wherever_they_are_killed(tmp_path):
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert east_west_train.main([*WITH_MOVES, "--out", str(whole)]) == 0
    for place in (22, 14, 18, 10, 12):
        flags = flags_for(run, WITH_MOVES, repeated=True)
        killed_at(place, "scenarios.east_west_train", flags, run)

    assert east_west_train.main(flags_for(run, WITH_MOVES, repeated=True)) == 0

    assert_same_hi_ppo(whole, run, (*HI_PPO_FILES, MOVES_CSV, MOVES_PT))


def sweep_base(folder: Path, *, steps: int = 1408, draws: int = 1) -> list[str]:
    """Settings of the trainings of a sweep: 11 updates each if no steps are given."""
    base = folder / "base.yaml"
    base.write_text(
        f"{{steps: {steps}, evaluation_draws: {draws}, num_envs: 16, calibration: none}}"
    )
    return ["--quick", "--base", str(base)]


def sweep_flags(base: list[str], out: Path) -> list[str]:
    """Two trainings at once."""
    return [*base, "--seeds", "0,1", "--processes", "2", "--out", str(out)]


@pytest.mark.soak
def test_a_sweep_that_is_killed_goes_on_to_the_same_table(tmp_path):
    """Its trainings end with it; the same command begins, continues and ends all of them.

    The undisturbed trainings run one by one, and a sweep puts them into its table.
    """
    out, whole = tmp_path / "out", tmp_path / "whole"
    base = sweep_base(tmp_path)
    flags = sweep_flags(base, out)
    assert killed_after_rows(3, out / "seed0" / "metrics.csv", "scenarios.sweep", flags)

    assert sweep.main(flags) == 0

    scenario = ["--policy", "flat", "--quick", "--config", base[-1], "--workers", "1", "--no-kpi"]
    for seed in "01":
        place = ["--seed", seed, "--out", str(whole / f"seed{seed}")]
        assert east_west_train.main([*scenario, *place]) == 0
    assert sweep.main(sweep_flags(base, whole)) == 0
    pd.testing.assert_frame_equal(*(pd.read_csv(each / "sweep.csv") for each in (whole, out)))
    for seed in ("seed0", "seed1"):
        assert_same_results(whole / seed, out / seed)


@pytest.mark.soak
@pytest.mark.parametrize("num_rows", [0, 1, 2, 5, 8, 10, 11, 13, 15, 16])
def test_a_sweep_goes_on_wherever_it_is_killed(num_rows, undisturbed, tmp_path):
    out = tmp_path / "out"
    flags = sweep_flags(sweep_base(tmp_path, steps=2048, draws=2), out)
    for _ in range(3):
        killed_after_rows(num_rows, out / "seed1" / "metrics.csv", "scenarios.sweep", flags)

    assert sweep.main(flags) == 0

    for name in ("checkpoint.safetensors", "trace.json"):
        assert (out / "seed0" / name).read_bytes() == (undisturbed / name).read_bytes()


def test_copies_of_input_files_are_put_in_place_where_a_kill_came_between(tmp_path):
    """Just after config.json, whose presence says that the others are whole."""
    run, network = tmp_path / "run", tmp_path / "network.yaml"
    network.write_text("domains")
    with RunFolder.created(run) as folder:
        folder.write_config({"seed": 0}, {"network": network})
    (run / "network.yaml").rename(run / ".network.yaml.tmp")

    with RunFolder.opened(run) as folder:
        assert (folder.path / "network.yaml").read_text() == "domains"
