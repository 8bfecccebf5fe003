"""The commands that scale a fleet."""

import csv
import io
import json
from dataclasses import replace

import pytest
from command_output import PAPER, assert_measurement_is_written, error_of

from agents.serving.table import POLICY_NAMES
from des.base.command import UsageError
from des.worlds.reading import read_topology
from scenarios.autoscale.command import main
from scenarios.autoscale.fleet_config import FleetConfig, config_requests, config_world

SMALL = ["--num-requests", "60", "--trace", "azure-2023-conv-first-2000"]


def test_policies_are_compared_and_everything_is_written(tmp_path, capsys):
    out = ["--out", str(tmp_path), "--advisory", "queue"]
    assert main([*SMALL, "--policy", "static,hpa", *out, "--parquet"]) == 0
    assert_measurement_is_written(tmp_path, rows="figures", settings="result.json")

    rows = list(csv.DictReader(io.StringIO((tmp_path / "figures.csv").read_text())))
    assert [row["policy"] for row in rows] == ["static", "hpa"]
    assert all(row["num_finished"] == "60" for row in rows)
    assert "attainment" in capsys.readouterr().out
    for name in ("static", "hpa"):
        requests = (tmp_path / f"requests_{name}.csv").read_text().splitlines()
        assert len(requests) == 61
        assert json.loads((tmp_path / f"trace_{name}.json").read_text())["traceEvents"]
        assert (tmp_path / f"instances_{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "advised" in (tmp_path / f"advisory_{name}.csv").read_text()
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Instances under static" in page
    assert "Instances under hpa" in page


def test_every_policy_of_the_list_is_started_by_the_command(capsys):
    flags = ["--thin", "0.2", "--policy", ",".join(POLICY_NAMES), "--figures", "", "--json"]
    assert main([*SMALL, *flags]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["policy"] for row in rows] == list(POLICY_NAMES)


def test_equal_seeds_write_equal_bytes(tmp_path):
    for name in ("one", "two"):
        flags = ["--thin", "0.5", "--start-variation", "0.4", "--policy", "load"]
        flags += ["--figures", ""]
        assert main([*SMALL, *flags, "--out", str(tmp_path / name)]) == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_the_token_pool_may_have_fewer_gpus_than_the_prompt_pool(capsys):
    engine = ["--token-engine", "h100-llama-3.3-70b-fp8-tp4", "--policy", "static", "--json"]
    usd = []
    for flags in ([], engine[:2]):
        assert main([*SMALL, *flags, *engine[2:]]) == 0
        (row,) = json.loads(capsys.readouterr().out)["rows"]
        usd.append(row["gpu_h"] / row["end_s"] * 3600)
    assert usd == pytest.approx([6 * 8, 4 * 8 + 2 * 4])
    assert main([*SMALL, "--mixed", "1", *engine]) == 2
    assert "--token-engine must be of a token pool" in capsys.readouterr().err


def test_capacity_grows_with_the_fleet(capsys):
    assert main(["capacity", *SMALL, "--instances", "1,2", "--slo-ttft", "1"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert float(rows[1][2]) > 1.2 * float(rows[0][2])


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--policy", "hpo"], "did you mean 'hpa'"),
        (["--trace", "nowhere.csv"], "--trace must be a file or one of"),
        (["--slo-ttft", "0"], "ttft_s must be positive"),
        (["--slo-tbt", "nan"], "gap_s must be positive"),
        (["--engine", "h100"], "engine: must be a known name"),
        (["--engine", "h100-llama-3.3-70b-fp8-tp16"], "did you mean 'h100-llama-3.3-70b-fp8-tp8'"),
        (["--slo-tbt", "0"], "gap_s must be positive"),
        (["--max-instances-per-pool", "200"], "max_per_pool and max_total must not decrease"),
        (["--mixed", "200"], "max_total"),
        (["--min-instances-per-pool", "3"], "initial token must be at least min_per_pool"),
        (["--thin", "2"], "thin must be above 0 and at most 1"),
    ],
)
def test_bad_flags_give_one_line(tmp_path, capsys, flags, named):
    assert named in error_of(main, [*SMALL, "--out", str(tmp_path / "out"), *flags], capsys)
    assert not (tmp_path / "out").exists()


STATE = "{num_instances: 3, instance: h100-llama-3.3-70b-fp8-tp4, parallelism: 4}"


def world_of(tmp_path, applications, state):
    """World of a configuration with both files."""
    (tmp_path / "applications.yaml").write_text(applications)
    (tmp_path / "state.yaml").write_text(state)
    config = FleetConfig(
        trace="azure-2024-form",
        applications=tmp_path / "applications.yaml",
        application="chat",
        start_state=tmp_path / "state.yaml",
    )
    return config_world(config, config_requests(config))


APPLICATIONS = (
    "applications: [{application_id: chat, scaling_manager: {scale_up_delay: 7.0, "
    "drain_check_interval: 2}}]"
)


def test_applications_and_start_state_are_taken_from_files(tmp_path):
    world = world_of(tmp_path, APPLICATIONS, f"prompt: {STATE}\ntoken: {STATE}\n")

    assert (world.start.load_s, world.limits.drain_check_s) == (7.0, 2.0)
    assert dict(world.initial) == {"prompt": 3, "token": 3}
    assert world.engine.num_gpus == 4


@pytest.mark.parametrize(
    ("applications", "state", "named"),
    [
        (APPLICATIONS, f"prompt: {STATE}", "start state of the pools prompt and token"),
        (APPLICATIONS, f"mixed: {STATE[:-3]} 8}}", "parallelism must be 4"),
        (APPLICATIONS, f"mixed: {STATE.replace('h100', 'h101')}", "engine: must be a known name"),
        (APPLICATIONS, "mixed: {num_instances: 0}", "num_instances"),
        (APPLICATIONS.replace("chat", "code"), f"mixed: {STATE}", "one of code, got 'chat'"),
        (APPLICATIONS.replace("7.0", "-1"), f"mixed: {STATE}", "scale_up_delay"),
    ],
)
def test_bad_files_are_refused(tmp_path, applications, state, named):
    with pytest.raises(ValueError, match=named):
        world_of(tmp_path, applications, state)


def test_capacity_of_two_pools_is_compared_and_drawn(tmp_path, capsys):
    flags = ["--instances", "2", "--splits", "1+1", "--slo-ttft", "1", "--out", str(tmp_path)]
    assert main(["capacity", *SMALL, *flags, "--figures", "png,svg", "--parquet"]) == 0
    capacity = {"rows": "capacity", "figure": "capacity"}
    assert_measurement_is_written(tmp_path, **capacity, settings="result.json")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "capacity.csv").read_text())))
    assert [row["fleet"] for row in rows] == ["2 mixed", "1+1"]
    assert [row["is_pareto"] for row in rows].count("True") == 1
    assert (tmp_path / "capacity.png").read_bytes().startswith(b"\x89PNG")
    assert "written" in capsys.readouterr().out
    assert main(["capacity", *SMALL, "--splits", "2-1"]) == 2
    assert "such as 2+1" in capsys.readouterr().err


SHARED = """\
applications:
  - {application_id: chat, policy: hpa, priority: 1}
  - {application_id: 7, trace: "poisson:3:10", slo_ttft: 2.0, start_state: state.yaml}
"""


def test_applications_of_a_file_share_a_cluster(tmp_path, capsys):
    (tmp_path / "apps.yaml").write_text(SHARED)
    (tmp_path / "state.yaml").write_text(f"mixed: {STATE.replace('s: 3', 's: 1')}\n")
    flags = ["--applications", str(tmp_path / "apps.yaml"), "--out", str(tmp_path / "out")]
    flags += ["--prompt", "1", "--token", "1", "--servers", "4"]
    assert main(["shared", *SMALL, *flags]) == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "figures.csv").read_text())))
    assert [row["policy"] for row in rows] == ["chat", "7"]
    assert all(row["num_unfinished"] == "0" for row in rows)
    assert (tmp_path / "out" / "instances_7.csv").read_text().startswith("number,pool")
    assert main(["shared", *SMALL, *flags, "--servers", "2"]) == 2
    assert "must fit on 2 servers" in capsys.readouterr().err


def test_jobs_train_on_the_servers_of_applications(tmp_path, capsys):
    (tmp_path / "apps.yaml").write_text("applications: [{application_id: chat, priority: 1}]")
    flags = ["--applications", str(tmp_path / "apps.yaml"), "--out", str(tmp_path / "out")]
    flags += ["--mixed", "1", "--servers", "2", "--training-jobs", "5"]
    assert main(["shared", *SMALL, *flags]) == 0
    said = capsys.readouterr().out
    assert "training: 5 jobs" in said
    assert "serving" in said
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "training_jobs.csv").read_text())))
    assert sorted(int(row["job_id"]) for row in rows) == [0, 1, 2, 3, 4]
    assert main(["shared", *SMALL, *flags, "--training-policy", "fiffo"]) == 2
    assert "unknown ordering 'fiffo'" in capsys.readouterr().err


def test_waits_of_queues_are_printed_beside_closed_forms(tmp_path, capsys):
    flags = ["--json", "--out", str(tmp_path), *PAPER]
    assert main(["queues", "--runs", "2", "--num-requests", "20000", *flags]) == 0
    shown = capsys.readouterr()
    assert [row["queue"] for row in json.loads(shown.out)["rows"]] == ["M/M/1"] * 3 + ["M/D/1"] * 3
    queues = {"rows": "queues", "figure": "queue_errors"}
    assert_measurement_is_written(tmp_path, **queues, settings="result.json")
    lines = [line for line in shown.err.splitlines() if line.startswith("M/")]
    assert [line.split()[0] for line in lines] == ["M/M/1"] * 3 + ["M/D/1"] * 3
    errors = [float(line.split()[-1].rstrip("%")) for line in lines]
    assert all(abs(error) < 5.0 for error in (*errors[:2], *errors[3:5]))


@pytest.mark.parametrize("trace", ["conversations:0.5:60", "poisson:5:20"])
def test_new_flags_of_fleets_reach_the_world(trace):
    config = FleetConfig(
        trace=trace,
        mixed=2,
        router="prefix_aware",
        prefix_block_tokens=128,
        swap_gb_per_s=20.0,
        warm=1,
        sleeping=2,
        drain_moves_out=True,
        network="four_uneven",
        engine="shapes:llama3_8b:h100:1",
    )
    config = replace(config, domains=(read_topology("four_uneven").domains[0].name,))
    world = config_world(config, config_requests(config))
    assert world.engine.prefix_block_tokens == 128
    assert world.engine.swap_bytes_per_s == 20e9
    assert (world.start.num_warm, world.start.num_sleeping) == (1, 2)
    assert world.limits.drain_moves_out
    assert world.sites is not None
    assert world.engine.times_from == "shapes"
    with pytest.raises(UsageError, match="--domains must name"):
        config_world(replace(config, domains=()), config_requests(config))
    with pytest.raises(UsageError, match="need --network"):
        config_world(replace(config, network=None), config_requests(config))
