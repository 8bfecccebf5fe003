"""Flags of the main command: files of users, costs, targets, interruption, and bad input."""

import json
import re
from importlib.util import find_spec

import pandas as pd
import pytest
import yaml
from command_output import assert_refused, error_of
from quick_training import NO_PICTURES, QUICK, SMALL
from strategies import ALLOWED_SCHEDULES
from training_runs import assert_same_results

from agents.hi_ppo.policies import shipped_files
from agents.planners.table import reference_planners
from calibration import write_corrections
from des import Corrections
from des.plan.replacement import Replacement
from des.worlds import EAST_CENTRAL_WEST
from scenarios.train.east_west.command import main
from scenarios.train.flat_command import make_scenario_task, resolve
from scenarios.train.training_config import ppo_config, recorded


def test_table_and_verdict_are_printed_and_then_the_targets_on_the_world_of_the_run(
    tmp_path, capsys
):
    """Hardly trained it misses some, which does not make the run fail."""
    run = tmp_path / "run"

    assert main([*QUICK, *NO_PICTURES, "--kpi", "--out", str(run)]) == 0

    shown = capsys.readouterr().out
    for planner in ("policy", *reference_planners()):
        assert planner in shown
    assert "against exact" in shown
    assert "training: update 2 of 2: 256/256 steps, " in shown
    assert shown.index(f"Report: {run / 'report.html'}") < shown.index("slower at bandwidth")
    plain = json.loads((run / "kpi.json").read_text())
    assert list(plain["columns"]) == ["this run", *(path.stem for path in shipped_files()[:1])]
    verdicts = {one["name"]: one["verdict"] for one in plain["columns"]["this run"]}
    assert verdicts["gap to exact, mean"] == "missed"
    assert verdicts["gap at 10 domains"] == "not measured"
    assert "slower at bandwidth" in (run / "report.html").read_text()


def test_a_world_without_exact_and_without_targets_says_why(tmp_path, capsys):
    """Seven domains and 32 layers have far more placements than exact takes.

    They are in a star: some pairs have no link of their own.
    """
    content = yaml.safe_load(EAST_CENTRAL_WEST.read_text())
    content["topology"]["domains"] = [
        content["topology"]["domains"][0] | {"name": f"d{index}"} for index in range(7)
    ]
    content["topology"]["cross_domain_links"] = [
        {"source": "d0", "dest": f"d{index}", "bandwidth": "5Gbps", "latency": "30ms"}
        for index in range(1, 7)
    ]
    network = tmp_path / "star.yaml"
    network.write_text(yaml.safe_dump(content))
    flags = ["--network", str(network), "--model", "llama2_7b", "--microbatches", "4"]

    assert main([*QUICK, *NO_PICTURES, *flags, "--kpi", "--out", str(tmp_path / "run")]) == 0

    shown = capsys.readouterr().out
    assert "need a link in each direction between every two" in shown
    assert json.loads((tmp_path / "run" / "kpi.json").read_text())["columns"] == {}
    assert "exact was left out" in shown
    assert "exact" not in set(pd.read_csv(tmp_path / "run" / "evaluation.csv")["planner"])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--backend", "astra"], "backend must be one of des, astra-aware, .*; got 'astra'"),
        (["--backend", "astra-aware", "--calibration", "aware"], "must be none with --backend"),
        (["--model", "llama9"], "model: must be one of .*; got 'llama9'"),
        (["--network", "absent.yaml"], r"absent\.yaml: topology file cannot be read"),
        (
            ["--schedule", "zigzag"],
            f"{ALLOWED_SCHEDULES} 'zigzag'",
        ),
        (["--actions", "any"], "actions: must be one of per_layer, order_split; got 'any'"),
        (["--corrections", "absent.json"], r"absent\.json: corrections file cannot be read"),
        (["--replacement", "all"], "replacement must be one of none, restart, full; got 'all'"),
        (["--restart-s", "5"], r"restart_s must be left out without replacement, got 5\.0"),
        (
            ["--replacement", "full", "--restart-s", "-1"],
            r"replacement: restart_s must be finite and not negative, got -1\.0",
        ),
        (["--iterations-per-epoch", "0"], "iterations_per_epoch must be a whole number from 1"),
        (["--discount", "1.5"], r"discount must be in \[0, 1\], got 1\.5"),
        (
            ["--calibration", "exact"],
            "calibration must be one of auto, none, pairwise, aware, unaware, ns3",
        ),
        (
            ["--calibration-interval-steps", "0"],
            "calibration_interval_steps must be a whole number from 1",
        ),
        (["--calibration-placements", "8"], "must leave more than the 6 factors .* got 8 cases"),
        (["--calibration-bound", "0"], "calibration_bound must be positive"),
        (["--steps", "0"], "steps must be a whole number from 1"),
        (["--workers", "0"], "workers must be a whole number from 1"),
        (["--learning-rate", "0"], r"learning_rate must be positive and at most 1, got 0\.0"),
        (["--num-envs", "1", "--steps-per-rollout", "2"], "must be at least 4, got 1 x 2"),
        (["--seed", "-1"], r"seed must be a whole number within \[0, 2\*\*63\), got -1"),
        (["--microbatches", "1000000"], "microbatches must be a whole number from 1 to 100000"),
        (["--num-layers", "1000000"], "num_layers must be a whole number from 1 to 100000"),
        (["--model", "llama3_405b"], r"at most the 1920\.0 GB of all domains together, got 6493"),
        (["--step", "5"], "unknown argument '--step'; did you mean '--steps'?"),
        (["--steps", "many"], "argument --steps: must be an integer, got 'many'"),
        (["--config", "absent.yaml"], r"absent\.yaml: cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(flags, message, tmp_path, capsys):
    out = tmp_path / "run"
    flat = ["--policy", "flat", *flags, "--out", str(out)]
    assert_refused(main, flat, message, capsys, unwritten=out)


def test_a_run_folder_that_cannot_be_made_is_refused(tmp_path, capsys):
    (tmp_path / "file").touch()

    assert main([*QUICK, "--out", str(tmp_path / "file" / "run")]) == 2

    assert "cannot be made: Not a directory" in capsys.readouterr().err


def test_a_run_on_files_of_ones_own_can_be_repeated_from_its_folder_alone(tmp_path):
    """The network and the corrections are gone when the run is repeated, and when it is resumed."""
    network, factors = tmp_path / "mine.yaml", tmp_path / "factors.json"
    network.write_text(EAST_CENTRAL_WEST.read_text().replace("5Gbps", "4Gbps"))
    write_corrections(Corrections(compute_time_factor=2.0), factors)
    flags = ["--network", str(network), "--corrections", str(factors)]
    run, again = tmp_path / "run", tmp_path / "again"
    assert main([*QUICK, *flags, "--out", str(run)]) == 0
    network.unlink()
    factors.unlink()

    record = ["--config", str(run / "config.json"), "--workers", "1"]
    assert main([*record, "--out", str(again)]) == 0
    (run / "report.html").unlink()
    assert main(["--resume", "--out", str(run)]) == 0

    assert_same_results(run, again)
    times_s = pd.read_csv(run / "evaluation.csv").groupby("planner")["iteration_time_s"].mean()
    assert times_s["single_domain"] == pytest.approx(2 * 121.376, rel=1e-3)


def test_costs_of_a_changed_placement_are_trained_on_judged_by_and_recorded(tmp_path, capsys):
    """What stays pays nothing; the record alone repeats the run, and resumes it."""
    flags = ["--iterations-per-epoch", "3", "--replacement", "restart", "--restart-s", "60"]
    run, again = tmp_path / "run", tmp_path / "again"
    assert main([*SMALL, *flags, "--out", str(run)]) == 0

    config = json.loads((run / "config.json").read_text())["config"]
    asked = ("iterations_per_epoch", "replacement", "restart_s", "discount")
    assert [config[name] for name in asked] == [3, "restart", 60.0, 0.9]
    judged = pd.read_csv(run / "evaluation.csv").set_index(["planner", "draw"])
    assert set(judged["migration_s"]) <= {0.0, 60.0}
    assert judged.loc["single_domain", "migration_s"].tolist() == [60.0, 0.0]
    assert judged.loc["uniform", "migration_s"].tolist() == [0.0, 0.0]
    times_s = judged["iteration_time_s"]
    assert times_s["single_domain", 0] == pytest.approx(times_s["single_domain", 1] + 60.0 / 3)
    shown = capsys.readouterr().out
    assert "change [s]" in (run / "report.html").read_text()
    assert "a restart of 60 s, shared by the 3 iterations of the epoch" in " ".join(shown.split())

    record = ["--config", str(run / "config.json"), "--workers", "1"]
    assert main([*record, "--out", str(again)]) == 0
    assert_same_results(run, again)
    assert main(["--resume", "--out", str(run), "--restart-s", "61"]) == 2
    assert "with --resume, restart_s must be 60.0 as in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "discount", "costs"),
    [
        ([], 0.0, None),
        (["--replacement", "full"], 0.9, Replacement()),
        (
            ["--replacement", "restart", "--restart-s", "5"],
            0.9,
            Replacement(restart_s=5.0, pays_bytes=False),
        ),
        (["--replacement", "full", "--discount", "0"], 0.0, Replacement()),
        (["--discount", "0.5"], 0.5, None),
    ],
)
def test_the_discount_looks_ahead_where_changes_cost_something(flags, discount, costs):
    config, _ = resolve(flags)

    assert ppo_config(config).discount == recorded(config)["discount"] == discount
    assert make_scenario_task(config).replacement == costs


def test_runs_without_a_name_are_numbered_on_and_the_newest_is_resumed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "east_west-007").mkdir(parents=True)

    assert main([*SMALL, *NO_PICTURES]) == 0
    assert (tmp_path / "runs" / "east_west-008" / "report.html").exists()
    (tmp_path / "runs" / "east_west-008" / "report.html").unlink()
    assert main(["--resume"]) == 0
    assert (tmp_path / "runs" / "east_west-008" / "report.html").exists()


def test_there_must_be_a_run_to_resume(tmp_path, capsys, monkeypatch):
    assert main(["--resume", "--out", str(tmp_path / "absent")]) == 2
    assert "does not exist, so there is no run to resume" in capsys.readouterr().err

    monkeypatch.chdir(tmp_path)
    assert "--resume must find a run in runs" in error_of(main, ["--resume"], capsys)


def test_a_backend_alone_trains_the_flat_policy_on_what_it_measures(tmp_path, capsys):
    flags = ["--backend", "astra-pairwise", "--quick", "--steps", "16", "--num-envs", "4"]
    flags += ["--steps-per-rollout", "4", "--evaluation-draws", "2", "--model", "llama2_7b"]
    flags += ["--microbatches", "2", "--num-layers", "6", "--out", str(tmp_path / "run")]
    assert main([*flags, *NO_PICTURES]) == 0

    shown = capsys.readouterr().out
    assert "Calibration: none, as astra-pairwise measures the iterations" in shown
    assert re.search(r"Backend astra-pairwise: 16 placements judged, \S+ ms of wall time", shown)
    rows = pd.read_csv(tmp_path / "run" / "evaluation.csv")
    assert (rows["communication_cost_cycles"] >= 0).all()
    assert (pd.read_csv(tmp_path / "run" / "metrics.csv")["step"] == [16]).all()


@pytest.mark.skipif(find_spec("cppyy") is not None, reason="the extra ns3 is installed")
def test_a_backend_that_is_not_installed_is_one_line(tmp_path, capsys):
    assert main(["--backend", "ns3", "--out", str(tmp_path / "run"), *NO_PICTURES]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "--backend ns3: network of packets: needs the extra [ns3]" in error
    assert not (tmp_path / "run").exists()
