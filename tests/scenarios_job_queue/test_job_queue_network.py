"""Queues on a network from the command: shared links, bytes and costs of links, bad input."""

import json

import numpy as np
import pandas as pd
import pytest
from command_output import PAPER, assert_measurement_is_written, assert_refused

from agents.decision.problem import PlanningProblem
from des import PlaneWorlds, build_workload, simulate
from scenarios.job_queue.command import main
from scenarios.job_queue.job_pricing import planner_named
from scenarios.link_shares import main as compare_shares
from scenarios.training_run import main as train

NETWORK = ("--network", "aws_like", "--pricing", "network", "--mix", "blox", "--workers", "1")
SMALL = (*NETWORK, "--policy", "fifo", "--load", "1", "--track", "5:14")


def test_bytes_and_costs_are_those_of_the_links_used(tmp_path, capsys):
    """Consolidated jobs of at most 8 GPUs stay in their domains; scattered ones do not."""
    out = tmp_path / "out"
    argv = ("--placing", "scattered,best_fit", "--gpu-hour-usd", "4", "--out", str(out))
    store = ("--price-store", str(tmp_path / "prices.sqlite"))
    assert main([*SMALL, *argv, *store]) == 0

    links, results = pd.read_csv(out / "links.csv"), pd.read_csv(out / "results.csv")
    by_scheduler = links.groupby("scheduler", sort=False)[["num_bytes", "usd"]].sum()
    assert by_scheduler["num_bytes"].tolist() == pytest.approx(results["wan_bytes"].tolist())
    assert by_scheduler["usd"].tolist() == pytest.approx(results["wan_usd"].tolist())
    assert results["wan_bytes"][0] > results["wan_bytes"][1]
    gpu_usd = 4 * results["gpu_hours"]
    assert results["cost_usd"].tolist() == pytest.approx((gpu_usd + results["wan_usd"]).tolist())
    assert "Links, means over loads and seeds" in (out / "report.html").read_text("utf-8")

    capsys.readouterr()
    assert main([*SMALL, "--placing", "scattered", *store]) == 0
    assert f"{results['wan_bytes'][0] / 1e12:.3g} TB on links" in capsys.readouterr().out


def test_a_training_run_with_the_loads_of_a_queue_is_slower(tmp_path):
    """The queue's nodes are half of each domain; what its jobs hold the training lacks."""
    queue = tmp_path / "queue"
    argv = ("--network", "aws_like", "--workers", "1", "--policy", "fifo", "--load", "6")
    assert main([*argv, "--track", "0:29", "--out", str(queue)]) == 0
    training = ("--network", "aws_like", "--model", "llama3_2_1b", "--num-layers", "4")
    training = (*training, "--placement", "Virginia*2,Oregon*2", "--epochs", "12")
    training = (*training, "--epoch-s", "3600", "--figures", "")
    plain, loaded = tmp_path / "plain", tmp_path / "loaded"
    assert train([*training, "--out", str(plain)]) == 0
    loads = ("--replay-loads", str(queue / "loads-fifo.csv"))
    assert train([*training, *loads, "--out", str(loaded)]) == 0

    times_s = [
        pd.read_csv(folder / "iterations.csv")["duration_s"].mean() for folder in (plain, loaded)
    ]
    assert times_s[1] > 1.1 * times_s[0]
    written = pd.read_csv(loaded / "loads.csv")
    assert written["queue_length"].max() >= 0
    assert 0 < written["gpu_utilisation"].max() <= 0.5


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("--pricing", "network"), "--network: must be given with --pricing network"),
        (("--pricing", "links"), "--pricing: unknown 'links'"),
        ((*NETWORK, "--gpus-per-node", "3"), "num_gpus must be a multiple of the 3 GPUs of a node"),
        ((*NETWORK, "--link-sharing", "fifo"), "--link-sharing: unknown 'fifo'"),
        ((*NETWORK, "--planner", "best"), "--planner: unknown 'best'"),
        (
            (*NETWORK, "--compat", "blox", "--round-duration", "300"),
            "--pricing: must be plain with --compat blox",
        ),
    ],
)
def test_flags_of_the_network_that_do_not_fit_are_refused(argv, why, tmp_path, capsys):
    out = tmp_path / "out"
    assert_refused(main, [*argv, "--out", str(out)], why, capsys, unwritten=out)


def test_the_trained_policies_plan_jobs_over_domains():
    """Their plan is at most half as slow again as the best placement."""
    topology = PlaneWorlds(num_domains=2).draw(np.random.default_rng(0))
    workload = build_workload("llama3_2_1b", num_microbatches=8)
    problem = PlanningProblem(topology=topology, workload=workload)
    times_s = [
        simulate(topology, workload, planner_named(name)(problem, np.random.default_rng(0)))
        for name in ("hi_ppo", "exact")
    ]

    assert times_s[0].makespan_s < 1.5 * times_s[1].makespan_s


def test_shares_are_compared_with_messages(tmp_path, capsys):
    flags = ["--mixes", "1", "--iterations", "2", "--json", "--out", str(tmp_path / "out")]
    assert compare_shares([*flags, *PAPER]) == 0

    shown = capsys.readouterr()
    assert "error of their times by shares: mean" in shown.err
    said = json.loads(shown.out)
    assert said["lines"][1].startswith("error of their times by shares: mean")
    assert said["rows"][0].keys() == {"error", "times_slower_than_alone"}
    assert_measurement_is_written(tmp_path / "out", rows="jobs", figure="share_errors")
