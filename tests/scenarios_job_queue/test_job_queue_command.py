"""The command that compares schedulers: files, equal results, presets and bad input."""

import dataclasses
import json
import re
from dataclasses import replace

import pandas as pd
import pytest
from command_output import assert_refused, help_of

from agents.cluster.table import ADMISSIONS, BLOX_ORDERINGS, ORDERINGS, PLACINGS, PREEMPTIONS
from scenarios.job_queue.command import main
from scenarios.job_queue.metrics import METRICS
from scenarios.job_queue.runs import run_all
from scenarios.job_queue.settings import Config, combinations, with_preset

SMALL = ("--nodes", "4", "--load", "0.4", "--mix", "blox", "--track", "5:14")
TRACE = "0,res18,10,500,1\n1,lstm,4,60,2\n2,lstm,4,600,4\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder of two policies on two seeds, in this process."""
    out = tmp_path_factory.mktemp("queue") / "out"
    argv = ("--policy", "fifo,srtf", "--seeds", "2", "--workers", "1", "--out", str(out))
    assert main([*SMALL, *argv, "--parquet"]) == 0
    return out


FIGURES = ("jct_cdf", "jct_by_load", "gpu_demand", "nodes")


def test_results_have_all_metrics_and_equal_workloads(folder):
    results = pd.read_csv(folder / "results.csv")

    assert set(METRICS) <= set(results)
    assert results["scheduler"].tolist() == ["fifo", "fifo", "srtf", "srtf"]
    assert results.groupby("seed")["workload"].nunique().tolist() == [1, 1]
    assert results["workload"].nunique() == 2
    assert (results["num_jobs"] == 10).all()
    assert (results["jct_median_s"] <= results["jct_p95_s"]).all()
    assert (results["fairness_mean"] >= 1).all()


def test_jobs_differences_and_page_are_written(folder):
    jobs = pd.read_csv(folder / "jobs.csv")
    means = jobs.groupby(["scheduler", "seed"], sort=False)["jct_s"].mean()
    results = pd.read_csv(folder / "results.csv")
    differences = pd.read_csv(folder / "differences.csv")
    page = (folder / "report.html").read_text("utf-8")

    assert len(pd.read_parquet(folder / "results.parquet")) == len(results)
    assert means.tolist() == pytest.approx(results["jct_mean_s"].tolist())
    assert differences[["scheduler", "reference", "num_seeds"]].values.tolist() == [
        ["srtf", "fifo", 2]
    ]
    assert re.findall(r'data-figure="(\w+)"', page) == list(FIGURES)
    assert all((folder / f"{name}.png").is_file() for name in FIGURES)
    assert json.loads((folder / "config.json").read_text("utf-8"))["config"]["policy"] == [
        "fifo",
        "srtf",
    ]


def test_two_processes_give_the_same_histories_as_one():
    config = Config(nodes=4, load=(0.4,), mix="blox", track="5:14", seeds=2, policy=("srtf",))
    found = [
        [
            (result.history, result.workload, result.demand)
            for result in run_all(replace(config, workers=workers), None, [*combinations(config)])
        ]
        for workers in (1, 2)
    ]

    assert found[0] == found[1]


def test_a_comparison_is_repeated_from_its_folder(folder, capsys):
    assert main(["--config", str(folder / "config.json"), "--policy", "fifo", "--out", "none"]) == 0

    hashes = pd.read_csv(folder / "results.csv")["workload"].unique()
    shown = capsys.readouterr().out
    assert all(f"workload {one}" in shown for one in hashes)


def test_a_trace_is_run_with_its_report(tmp_path, capsys):
    path = tmp_path / "replay.csv"
    path.write_text(TRACE, "utf-8")
    argv = ("--trace", str(path), "--load", "0", "--nodes", "1", "--policy", "fifo,srtf")
    argv = (*argv, "--workers", "1")

    assert main(argv) == 0
    shown = capsys.readouterr().out
    assert "trace of form blox: 3 of 3 rows are jobs" in shown
    assert "fifo, load 0, seed 0: 3 jobs" in shown


def test_a_preset_follows_the_rules_of_blox_and_flags_go_before_it(tmp_path, capsys):
    argv = ("--preset", "blox-fig12", "--track", "5:9", "--admission", "load_1.2", "--quick")
    assert main([*argv, "--workers", "1"]) == 0
    assert "las+load_1.2, load 8, seed 0: 5 jobs" in capsys.readouterr().out


def test_every_ordering_of_the_list_is_started_by_the_command(capsys):
    names = sorted(set(ORDERINGS) - {"ppo"})
    argv = ("--policy", ",".join(names), "--nodes", "2", "--load", "1", "--track", "0:3")
    assert main([*argv, "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert all(f"{name}, load 1, seed 0: 4 jobs" in shown for name in names)


@pytest.mark.parametrize(
    ("part", "names", "flags"),
    [
        ("placing", tuple(PLACINGS), ("--policy", "fifo")),
        ("preempting", tuple(PREEMPTIONS), ("--policy", "srtf")),
        ("admission", ("accept_all", "load_1.2", "quota_4", "look_ahead"), ("--policy", "las")),
        (
            "policy",
            tuple(BLOX_ORDERINGS),
            ("--compat", "blox", "--round-duration", "300", "--mix", "single"),
        ),
    ],
)
def test_every_other_part_of_the_lists_is_started_by_the_command(part, names, flags, capsys):
    argv = (*SMALL, "--track", "0:3", "--workers", "1", f"--{part}", ",".join(names), *flags)
    assert main(argv) == 0
    shown = capsys.readouterr().out
    assert shown.count(": 4 jobs, mean time") == len(names)
    if part == "admission":
        assert {name.partition("_")[0] for name in names} == {
            name.partition("_")[0] for name in ADMISSIONS
        }


@pytest.mark.parametrize(
    ("preset", "loads", "runs"),
    [("fig6", set(range(1, 9)), 24), ("fig12", {8}, 3), ("fig13", {9}, 9)],
)
def test_presets_sweep_what_the_figures_sweep(preset, loads, runs):
    config = with_preset(Config(preset=f"blox-{preset}"), frozenset())
    chosen = [*combinations(config)]
    assert {one.load for one in chosen} == loads
    assert len(chosen) == runs


def test_nodes_fail_and_elastic_jobs_change_their_width():
    config = Config(
        **{"nodes": 4, "load": (0.4,), "mix": "blox", "track": "5:14", "policy": ("pollux",)},
        **{"elastic_gpus": 4, "mtbf_hours": 20.0, "workers": 1},
    )
    (result,) = run_all(config, None, [*combinations(config)])

    assert result.history.num_failures > 0
    assert result.history.gpu_seconds.lost > 0
    assert result.history.num_suspensions > 0


def test_a_window_that_does_not_end_says_so_with_exit_code_1(capsys):
    argv = ("--nodes", "1", "--load", "20", "--track", "30:40", "--until-days", "2")
    assert main([*argv, "--policy", "fifo"]) == 1
    assert "UNFINISHED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--policy", "lass"), "unknown ordering 'lass'; did you mean 'las'"),
        (("--policy", "sjf", "--compat", "blox", "--round-duration", "9"), "unknown policy 'sjf'"),
        (("--compat", "blox"), "--round-duration: must be given"),
        (("--track", "9:3"), "--track: must be FIRST:LAST"),
        (("--load", "0"), "--load: must be positive"),
        (("--preset", "blox-fig7"), "--preset: unknown 'blox-fig7'; did you mean"),
        (("--quota", "a"), "--quota: must be TENANT=GPUS"),
        (("--policy", "las,las"), "must be one or more, each once"),
        (("--nodes", "0"), "nodes must be a whole number"),
        (("--figures", "gif"), "--figures"),
        (("--trace", "nowhere.csv", "--load", "0"), "nowhere.csv: cannot be read"),
        (("--mix", "blox", "--nodes", "1", "--load", "9"), "num_gpus must be at most"),
    ],
)
def test_bad_input_is_one_line(argv, message, tmp_path, capsys):
    out = tmp_path / "out"
    assert_refused(main, [*argv, "--workers", "1"], message, capsys, unwritten=out)


def test_the_help_names_every_flag_and_policy(capsys):
    shown = help_of(main, capsys, fields=dataclasses.fields(Config))

    for name in (*ORDERINGS, *PLACINGS, *PREEMPTIONS, *ADMISSIONS):
        assert f"\n  {name} " in shown, name
