"""The commands that scale a fleet."""

import csv
import io
import json

import pytest

from scenarios.autoscale.command import main
from scenarios.autoscale.fleet_config import FleetConfig, config_requests, config_world

SMALL = ["--num-requests", "60", "--trace", "azure-2023-conv-first-2000"]


def test_policies_are_compared_and_everything_is_written(tmp_path, capsys):
    out = ["--out", str(tmp_path), "--advisory", "queue"]
    assert main([*SMALL, "--policy", "static,hpa", *out]) == 0

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


def test_equal_seeds_write_equal_bytes(tmp_path):
    for name in ("one", "two"):
        flags = ["--thin", "0.5", "--start-variation", "0.4", "--policy", "load"]
        assert main([*SMALL, *flags, "--out", str(tmp_path / name)]) == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_capacity_grows_with_the_fleet(capsys):
    assert main(["capacity", *SMALL, "--instances", "1,2", "--slo-ttft", "1"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert float(rows[1][1]) > 1.2 * float(rows[0][1])


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--policy", "hpo"], "did you mean 'hpa'"),
        (["--trace", "nowhere.csv"], "--trace must be a file or one of"),
        (["--slo-ttft", "0"], "ttft_s must be positive"),
        (["--slo-tbt", "nan"], "gap_s must be positive"),
        (["--engine", "h100"], "engine: must be a known name"),
        (["--mixed", "200"], "max_total"),
        (["--min-instances-per-pool", "3"], "initial token must be at least min_per_pool"),
        (["--thin", "2"], "thin must be above 0 and at most 1"),
    ],
)
def test_bad_flags_give_one_line(tmp_path, capsys, flags, named):
    assert main([*SMALL, "--out", str(tmp_path / "out"), *flags]) == 2
    said = capsys.readouterr().err
    assert named in said
    assert said.count("\n") == 1
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
