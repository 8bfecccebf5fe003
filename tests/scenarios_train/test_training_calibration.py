"""The main command, calibrated: what it prints and keeps, what changes, and that it repeats."""

import json
from contextlib import redirect_stdout
from pathlib import Path

import pandas as pd
import pytest
import yaml
from command_output import error_of
from quick_training import NO_PICTURES, SMALL_JOB
from reference_programs import fake_programs
from training_runs import assert_same_results, calibrations, copy_of_run, interrupted, judged

from agents.ppo.checkpoint import load_checkpoint, save_checkpoint
from calibration import Store, write_corrections
from calibration.loop import Entry
from calibration.measuring.environment import BINARIES_VARIABLE
from des import Corrections
from des.worlds import EAST_CENTRAL_WEST
from des.worlds.reading import read_topology
from scenarios.train.calibration_log import CalibrationLog
from scenarios.train.east_west.command import main
from scenarios.train.flat_command import make_scenario_task
from scenarios.train.training_config import Config

SMALL = [
    *("--policy", "flat", "--quick", *SMALL_JOB),
    *("--steps", "512", "--calibration-interval-steps", "200", "--evaluation-draws", "2"),
    *("--workers", "1", *NO_PICTURES),
]
"""Four updates of 128 steps: calibrated before, probed at 128 for 256, calibrated then for 384."""


@pytest.fixture
def one_in_flight(tmp_path) -> Path:
    """East, Central and West with senders that have one message under way, as ASTRA-sim has."""
    content = yaml.safe_load(EAST_CENTRAL_WEST.read_text())
    content["transport"] = {"endpoints": "one_in_flight"}
    path = tmp_path / "one_in_flight.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture
def wrong_factors(tmp_path) -> Path:
    """Factors by which links have half their bandwidth."""
    path = tmp_path / "wrong.json"
    write_corrections(Corrections(wan_bandwidth_factor=0.5), path)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A calibrated run that went through, and what it printed in a file beside it; read-only."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    with folder.with_name("shown.txt").open("w") as shown, redirect_stdout(shown):
        assert main([*SMALL, "--out", str(folder)]) == 0
    return folder


def test_a_training_is_calibrated_unless_told_otherwise(finished):
    run, shown = finished, finished.with_name("shown.txt").read_text()

    assert (
        "Calibration 0, before training: 10 placements, error of iteration time < 0.01 %" in shown
    )
    assert "Probe 1, scheduled: 8 placements" in shown
    assert "all factors 1, unchanged" in shown
    assert "Calibration: pairwise by our engine" in shown
    assert "Fidelity to pairwise by our engine: mean error of iteration times < 0.01 %" in shown
    assert "Since this start, calibrating took " in shown
    log = calibrations(run)
    assert log["kind"].tolist() == ["fit", "probe", "fit"]
    assert log["ordered_at_step"].tolist() == [0, 128, 256]
    assert log["in_force_from_step"].tolist() == [0, 256, 384]
    assert (log["error_before"] < 1e-6).all()
    assert len(Store.open(run / "calibration.sqlite").rows()) == 28
    assert "Fidelity of the simulator" in (run / "report.html").read_text()


def test_wrong_factors_are_found_out_before_the_first_step(wrong_factors, tmp_path, capsys):
    """Our engine agrees with `des` as it is, so what is left is the run that had none."""
    none, corrected = tmp_path / "none", tmp_path / "corrected"
    assert main([*SMALL, "--calibration", "none", "--out", str(none)]) == 0
    capsys.readouterr()

    flags = ["--calibration", "pairwise", "--corrections", str(wrong_factors)]
    assert main([*SMALL, *flags, "--out", str(corrected)]) == 0

    assert "all factors 1 from step 0" in capsys.readouterr().out
    log = calibrations(corrected)
    assert log["is_changed"].tolist() == [True, False, False]
    assert log["error_before"][0] > 0.01
    assert log["error_after"][0] < 1e-6
    pd.testing.assert_frame_equal(judged(none), judged(corrected))
    states = [
        load_checkpoint(run / "checkpoint.safetensors")["policy"] for run in (none, corrected)
    ]
    for name, parameter in states[0]["parameters"].items():
        assert (parameter == states[1]["parameters"][name]).all(), name


def test_the_flag_on_endpoints_overrules_the_world():
    """So that the default world can be calibrated by the original's programs."""
    config = Config(endpoints="one_in_flight", model="llama2_7b", num_layers=8, microbatches=4)

    task = make_scenario_task(config)

    assert task.world.topology.transport.endpoints == "one_in_flight"
    assert read_topology(config.network).transport.endpoints == "overlapped"


def test_a_reference_of_half_the_bandwidth_is_what_is_trained_and_judged_on(
    one_in_flight, wrong_factors, tmp_path, monkeypatch, capsys
):
    """The programs run on half the bandwidth that they are told."""
    monkeypatch.setenv(BINARIES_VARIABLE, str(fake_programs(tmp_path / "bin", "congested")))
    run = tmp_path / "run"
    flags = ["--network", str(one_in_flight), "--calibration", "aware", "--steps", "128"]

    assert main([*SMALL, *flags, "--out", str(run)]) == 0

    assert "wan_bandwidth_factor " in capsys.readouterr().out
    factor = calibrations(run)["wan_bandwidth_factor"][0]
    assert factor == pytest.approx(0.5, rel=0.02)
    half = tmp_path / "half"
    monkeypatch.delenv(BINARIES_VARIABLE)
    flags = ["--network", str(one_in_flight), "--corrections", str(wrong_factors)]
    assert main([*SMALL, *flags, "--steps", "128", "--out", str(half)]) == 0
    assert "Calibration: none, as factors were given with --corrections" in capsys.readouterr().out
    times_s = [
        judged(each).astype({"iteration_time_s": float}).groupby("planner")["iteration_time_s"]
        for each in (run, half)
    ]
    uniform_s = [each.mean()["uniform"] for each in times_s]
    assert uniform_s[0] == pytest.approx(uniform_s[1], rel=0.02)


@pytest.mark.soak
def test_an_interrupted_run_goes_on_to_the_same_bytes(wrong_factors, tmp_path):
    """Stopped with a calibration under way, it begins that one again."""
    flags = [
        *SMALL[:-2],
        *("--calibration", "pairwise", "--corrections", str(wrong_factors)),
        *("--steps", "3840", "--calibration-interval-steps", "1500"),
    ]
    through, stopped = tmp_path / "through", tmp_path / "stopped"

    code, _ = interrupted(flags, stopped)

    assert code == 130
    assert load_checkpoint(stopped / "checkpoint.safetensors")["calibration"]["entries"]
    assert main([*flags, "--out", str(through)]) == 0
    assert main(["--resume", "--out", str(stopped)]) == 0
    assert_same_results(through, stopped)


def unknown_to_astra_sim(folder: Path) -> Path:
    """A world whose links are shared fairly."""
    content = yaml.safe_load(EAST_CENTRAL_WEST.read_text())
    content["transport"] = {"sharing": "fair"}
    path = folder / "fair.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_world_that_astra_sim_cannot_express_is_trained_on_with_a_word_of_it(tmp_path, capsys):
    network = str(unknown_to_astra_sim(tmp_path))

    assert main([*SMALL, "--network", network, "--out", str(tmp_path / "run")]) == 0

    shown = capsys.readouterr().out
    assert "Calibration: none, as what is trained cannot be calibrated: case: " in shown
    assert not (tmp_path / "run" / "calibrations.csv").exists()
    assert "cannot be calibrated" in (tmp_path / "run" / "report.html").read_text()


def test_a_reference_that_is_asked_for_and_cannot_run_the_world_is_an_error(tmp_path, capsys):
    network = str(unknown_to_astra_sim(tmp_path))
    flags = ["--network", network, "--calibration", "pairwise", "--out", str(tmp_path / "run")]

    assert "error: case: transport.sharing must be fifo" in error_of(main, [*SMALL, *flags], capsys)
    assert not (tmp_path / "run").exists()


def test_a_program_that_crashes_ends_the_training_which_goes_on_once_it_is_mended(
    one_in_flight, tmp_path, monkeypatch, capsys
):
    """Then it has begun with our engine, which no other program goes on from."""
    monkeypatch.setenv(BINARIES_VARIABLE, str(fake_programs(tmp_path / "bin", "crash")))
    run = tmp_path / "run"
    flags = ["--network", str(one_in_flight), "--calibration", "aware"]

    assert main([*SMALL, *flags, "--out", str(run)]) == 2

    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "std::bad_alloc" in shown
    monkeypatch.delenv(BINARIES_VARIABLE)
    assert main(["--resume", *NO_PICTURES, "--out", str(run)]) == 0
    assert calibrations(run)["is_changed"].tolist() == [False] * 3
    monkeypatch.setenv(BINARIES_VARIABLE, str(fake_programs(tmp_path / "other", "congested")))

    assert main(["--resume", "--out", str(run)]) == 2

    shown = capsys.readouterr().err
    assert "calibration must be aware by AstraSim_Analytical_Congestion_Aware" in shown
    assert "got aware by our engine" in shown


def test_a_run_is_resumed_as_calibrated_as_it_was_begun(finished, tmp_path, capsys):
    run = copy_of_run(finished, tmp_path / "run")
    record = json.loads((run / "config.json").read_text())
    record["config"]["calibration"] = "none"
    (run / "config.json").write_text(json.dumps(record))

    assert main(["--resume", "--out", str(run)]) == 2

    assert "calibration must be as in this run, which is without" in capsys.readouterr().err


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state.pop("entries"),
        lambda state: state["entries"][0].update(corrections={"wan_speed": 1.0}),
        lambda state: state.update(region=(1, 2)),
        lambda state: state.update(entries=[{"number": 0}]),
    ],
)
def test_a_checkpoint_of_another_calibration_is_refused(damage, finished, tmp_path, capsys):
    run = copy_of_run(finished, tmp_path / "run")
    checkpoint = run / "checkpoint.safetensors"
    state = load_checkpoint(checkpoint)
    damage(state["calibration"])
    save_checkpoint(checkpoint, state)

    shown = error_of(main, ["--resume", "--out", str(run)], capsys)
    assert f"checkpoint {checkpoint}: calibration must be what" in shown


def test_a_log_that_was_lost_is_made_again_from_the_checkpoint(finished, tmp_path):
    """All but what the clock said; the run has ended, and its last calibration is repeated."""
    run = copy_of_run(finished, tmp_path / "run")
    before = calibrations(run)
    entries = [
        Entry.from_plain(each)
        for each in load_checkpoint(run / "checkpoint.safetensors")["calibration"]["entries"]
    ]
    (run / "calibrations.csv").unlink()

    CalibrationLog(run / "calibrations.csv", entries[:-1]).append(entries[-1])

    pd.testing.assert_frame_equal(calibrations(run), before)


@pytest.mark.parametrize("what", ["nowhere", "a file that is no program"])
def test_a_missing_program_is_one_line_and_nothing_is_written(
    what, one_in_flight, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "bin"
    if what != "nowhere":
        fake_programs(folder, "aware")
        for program in folder.iterdir():
            program.chmod(0o644)
    monkeypatch.setenv(BINARIES_VARIABLE, str(folder))
    flags = ["--network", str(one_in_flight), "--calibration", "aware"]

    shown = error_of(main, [*SMALL, *flags, "--out", str(tmp_path / "run")], capsys)
    assert shown.startswith(f"error: {BINARIES_VARIABLE}: {folder}")
    assert not (tmp_path / "run").exists()
