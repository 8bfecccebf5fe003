"""The command of a training run on a world whose sites come and go."""

import csv
import json
import re
from pathlib import Path

import pytest
from command_output import assert_refused, printed_by
from documented import ROOT, section, shown_on
from spot_cases import write_trace

from agents.replanning.spot.table import METHODS
from des import read_topology
from des.world.files.topology_writer import to_yaml
from scenarios.decide import main as decide
from scenarios.run.command import main

WORLD = """\
topology:
  domains:
    - &site {name: A, num_gpus: 8, gpu: a100, intra_bandwidth: 300GB/s, intra_latency: 5us}
    - {<<: *site, name: B}
    - {<<: *site, name: C, gpu_price_usd_per_hour: 2.0}
  cross_domain_links:
    - {source: A, dest: B, bandwidth: 20Gbps, latency: 5ms}
    - {source: B, dest: C, bandwidth: 20Gbps, latency: 5ms}
    - {source: A, dest: C, bandwidth: 20Gbps, latency: 5ms}
availability:
  notice: none
  sites:
    A: {up: 2h, down: 30min}
    B: {up: 3h, down: 1h}
"""
JOB = ["--model", "llama2_7b", "--num-layers", "8", "--microbatches", "16"]
QUICK = [*JOB, "--epochs", "48", "--epoch-s", "600", "--horizon-epochs", "12", "--seed", "3"]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """File of a world with two sites that come and go, and one that stays."""
    path = tmp_path_factory.mktemp("world") / "spot.yaml"
    path.write_text(WORLD, encoding="utf-8")
    return str(path)


def run(folder, *flags):
    """Run the command and return its files."""
    assert main([*flags, "--out", str(folder)]) == 0
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def sampled(network, tmp_path_factory):
    """A run of eight hours decided by sampled control, and its files."""
    folder = tmp_path_factory.mktemp("sampled") / "run"
    return run(folder, "--network", network, "--planner", "sampled", *QUICK)


def test_what_is_held_is_up_and_adds_up_to_the_time_held(sampled):
    said = json.loads(sampled["result.json"])
    ticks = list(csv.DictReader(sampled["sites.csv"].decode().splitlines()))

    assert len(ticks) == 48 * 4
    held = [one for one in ticks if one["held"]]
    assert held
    for one in held:
        assert all(one[name] == "1" for name in one["held"].split("+"))
    assert all(one["C"] == "1" for one in ticks)
    assert said["held_s"] == len(held) * 150.0
    paid = sum("C" in one["held"].split("+") for one in held) * 150.0 * 8 * 2.0 / 3600.0
    assert said["usd"] == pytest.approx(paid)


def test_every_rule_is_beside_the_one_asked_for_and_none_beats_the_clairvoyant(sampled):
    said = json.loads(sampled["result.json"])
    rules = {row["rule"]: row for row in csv.DictReader(sampled["rules.csv"].decode().splitlines())}

    assert list(rules) == ["greedy", "hysteresis", "survival", "seasonal", "sampled"]
    assert float(rules["sampled"]["tokens"]) == said["tokens"]
    for row in rules.values():
        assert 0.0 < float(row["tokens"]) <= said["clairvoyant_tokens"]
    assert said["share_of_clairvoyant"] == said["tokens"] / said["clairvoyant_tokens"]


def test_the_recorded_flags_make_the_same_bytes_again(sampled, tmp_path):
    again = tmp_path / "again.json"
    again.write_text(json.dumps(json.loads(sampled["result.json"])["config"]), encoding="utf-8")

    assert run(tmp_path / "second", "--config", str(again)) == sampled


def test_greedy_has_no_horizon_whatever_is_given(sampled):
    """Others have the one that is given: 12 epochs of 600 s."""
    horizon_h = json.loads(sampled["result.json"])["horizon_h"]

    assert horizon_h.pop("greedy") is None
    assert set(horizon_h.values()) == {2.0}


def test_the_recorded_flags_of_a_rule_without_a_horizon_make_the_same_bytes(network, tmp_path):
    flags = ["--network", network, *JOB, "--planner", "greedy", "--figures", ""]
    first = run(tmp_path / "first", *flags, "--epochs", "6", "--epoch-s", "600")
    again = tmp_path / "again.json"
    again.write_text(json.dumps(json.loads(first["result.json"])["config"]), encoding="utf-8")

    assert run(tmp_path / "second", "--config", str(again), "--figures", "") == first


def test_horizons_that_are_not_given_are_the_best_on_other_courses(network, tmp_path):
    """Each rule has one of its own; the recorded flags, without any, make the same bytes again."""
    flags = ["--network", network, *JOB, "--planner", "survival", "--figures", ""]
    first = run(tmp_path / "first", *flags, "--epochs", "12", "--epoch-s", "1200")
    said = json.loads(first["result.json"])

    assert said["horizon_h"]["greedy"] is None
    assert said["horizon_h"]["survival"] in METHODS["survival"].horizons_h
    assert said["horizon_h"]["sampled"] in METHODS["sampled"].horizons_h
    assert "horizon_epochs" not in said["config"]
    again = tmp_path / "again.json"
    again.write_text(json.dumps(said["config"]), encoding="utf-8")
    assert run(tmp_path / "second", "--config", str(again), "--figures", "") == first


def test_a_course_without_a_site_that_is_up_trains_nothing(tmp_path):
    """One site, whose stays down last longer than the run."""
    world = WORLD.replace("    - {<<: *site, name: B}\n", "")
    world = world.split("  cross_domain_links")[0].replace("    - {<<: *site, name: C, ", "    # ")
    world += "availability:\n  sites:\n    A: {up: 1s, down: 1000d}\n"
    (tmp_path / "one.yaml").write_text(world, encoding="utf-8")
    flags = ["--network", str(tmp_path / "one.yaml"), "--planner", "survival", *QUICK]
    said = json.loads(run(tmp_path / "run", *flags, "--figures", "")["result.json"])

    assert (said["tokens"], said["clairvoyant_tokens"], said["share_of_clairvoyant"]) == (0, 0, 1)
    assert said["held_s"] == said["usd"] == 0.0


def test_partial_sight_asks_for_sites_that_are_down(sampled, network, tmp_path):
    flags = ["--network", network, "--planner", "sampled", *QUICK, "--partial", "--figures", ""]
    said = json.loads(run(tmp_path / "run", *flags)["result.json"])

    assert said["clairvoyant_tokens"] == json.loads(sampled["result.json"])["clairvoyant_tokens"]
    assert said["num_refused"] > 0
    assert said["share_of_clairvoyant"] <= 1.0


def test_a_plan_that_stays_is_held_whenever_its_sites_are_up(network, tmp_path, capsys):
    assert decide(["--network", network, *JOB, "--json"]) == 0
    plan = tmp_path / "plan.json"
    document = json.loads(capsys.readouterr().out)
    plan.write_text(json.dumps(document), encoding="utf-8")
    flags = ["--plan", str(plan), "--epochs", "48", "--epoch-s", "600", "--seed", "3"]
    files = run(tmp_path / "run", *flags, "--figures", "")

    used = "+".join(one["name"] for one in document["sites"] if one["stages"])
    ticks = list(csv.DictReader(files["sites.csv"].decode().splitlines()))
    for one in ticks:
        is_up = all(one[name] == "1" for name in used.split("+"))
        assert one["held"] == (used if is_up else "")
    said = json.loads(files["result.json"])
    assert said["offers"] == [used]
    again = tmp_path / "again.json"
    again.write_text(json.dumps(said["config"]), encoding="utf-8")
    assert run(tmp_path / "second", "--config", str(again), "--figures", "") == files


def test_decide_says_that_its_sites_come_and_go(network, capsys):
    assert decide(["--network", network, *JOB]) == 0

    shown = " ".join(capsys.readouterr().out.split())
    assert "sites come and go, up by their law: A 80 %, B 75 % of the time" in shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "planner must be one of greedy, hysteresis, survival, seasonal, sampled"),
        (["--planner", "exact"], "planner must be one of greedy.*got exact"),
        (["--planner", "greedy", "--dynamics", "ou"], "dynamics must be left out where sites come"),
        (["--planner", "greedy", "--loads", "A=0.1/0"], "loads must be left out where sites come"),
        (
            ["--planner", "sampled", "--link-delay-s", "60"],
            "link_delay_s must be left out where sites come",
        ),
        (["--planner", "sampled", "--links-in-use"], "links_in_use must be left out where sites"),
        (["--planner", "sampled", "--epochs", "0"], "epochs must be .*got 0"),
        (["--planner", "sampled", "--epoch-s", "0"], "epoch_s must be positive.*got 0"),
    ],
)
def test_flags_that_say_nothing_there_are_refused(flags, message, network, tmp_path, capsys):
    argv = ["--network", network, *JOB, *flags, "--out", str(tmp_path / "run")]
    assert_refused(main, argv, message, capsys, unwritten=tmp_path / "run")


def test_partial_sight_is_refused_where_no_site_goes(tmp_path, capsys):
    argv = ["--partial", "--out", str(tmp_path / "run")]
    message = "partial must be left out of a world without availability"
    assert_refused(main, argv, message, capsys, unwritten=tmp_path / "run")


def test_the_world_and_the_command_of_the_page(tmp_path, monkeypatch):
    """The section of the page in a shipped world, with a trace of a zone."""
    page = section("worlds.md", "Sites that come and go")
    (availability,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    sites = to_yaml(read_topology("east_central_west"))
    Path("spot.yaml").write_text(sites + availability, encoding="utf-8")
    write_trace(Path("west.json"))
    shown = shown_on(ROOT / "docs" / "worlds.md")
    (command,) = (each.normal for each in shown if "spot.yaml" in each.normal)

    assert "% of what a clairvoyant trains" in printed_by(command)
    assert json.loads(Path("runs/training_run/result.json").read_text("utf-8"))["num_moves"] > 0
