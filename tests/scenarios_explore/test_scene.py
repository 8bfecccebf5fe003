"""Scenes of the explorer: settings give the simulation that the commands give."""

import json
from dataclasses import replace

import pytest

from agents.decision.families import family_of
from des import read_topology, simulate
from des.base.flags import from_dict
from scenarios.explore.bubbles import bubble_figure, bubble_table
from scenarios.explore.exports import export_of
from scenarios.explore.rivals import HEAD, rival_table
from scenarios.explore.scene import FAMILY_NAMES, Settings, scene_of
from scenarios.explore.what_if import bandwidth_sweep, sweep_lines
from scenarios.iteration.iteration_config import Config
from scenarios.iteration.iteration_scenario import load_iteration

SMALL = Settings(model="llama2_7b", num_sequences=4)


@pytest.fixture(scope="module")
def scene():
    return scene_of(SMALL)


def test_a_scene_is_the_iteration_of_its_plan(scene):
    result = simulate(scene.topology, scene.workload, scene.plan)

    assert scene.result.makespan_s == result.makespan_s
    assert f"{result.makespan_s:.4g} s a step" in scene.sentences()["time"]


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_a_family_has_a_plan_of_its_kind(family):
    assert family_of(scene_of(replace(SMALL, family=family)).plan) == family


def test_controls_move_links_and_gpus(scene):
    moved = scene_of(replace(SMALL, bandwidth_factor=2.0, latency_factor=0.5, num_gpus=4))

    for before, after in zip(scene.topology.links, moved.topology.links, strict=True):
        assert after.bandwidth_bytes_per_s == 2.0 * before.bandwidth_bytes_per_s
        assert after.latency_s == 0.5 * before.latency_s
    assert {domain.num_gpus for domain in moved.topology.domains} == {4}


def test_domains_of_servers_have_whole_servers():
    """Two GPUs asked of servers of eight: one server."""
    moved = scene_of(replace(SMALL, network="two_sites_of_nodes", num_gpus=2))

    for domain in moved.topology.domains:
        assert domain.num_gpus == domain.nodes.gpus_per_node


def test_saved_files_simulate_the_same(scene, tmp_path):
    """The plan's file is one of flags for the command, next to the network's."""
    for kind in ("network", "plan", "trace"):
        name, content = export_of(scene, kind)
        (tmp_path / name).write_bytes(content)
    flags = json.loads((tmp_path / "plan.json").read_bytes())
    config = from_dict(
        Config, flags | {"network": str(tmp_path / "network.yaml")}, source="plan.json"
    )

    loaded = load_iteration(config)

    assert loaded.plan == scene.plan
    result = simulate(loaded.topology, loaded.workload, loaded.plan)
    assert result.makespan_s == pytest.approx(scene.result.makespan_s, rel=1e-9)
    assert json.loads((tmp_path / "trace.json").read_bytes())["traceEvents"]


def test_the_report_repeats_the_scene(scene):
    name, content = export_of(scene, "report")

    assert name == "report.html"
    assert b"python -m scenarios.simulate --config plan.json" in content


def test_rivals_are_sorted_and_the_plan_of_the_scene_is_among_them(scene):
    table = rival_table(scene)

    fits = table[table["fits"] == "yes"]["s a step"].astype(float)
    assert list(table) == list(HEAD)
    assert fits.is_monotonic_increasing
    assert {"this plan", "hi_ppo", "uniform"} <= set(table["planner"])


def test_a_sweep_finds_where_another_family_wins(scene):
    """With hardly any bandwidth one domain is quickest; the answer says so in words."""
    sweep = bandwidth_sweep(scene, factors=(1e-4, 1.0, 100.0))
    winners = sweep.winners()

    rows = sweep.rows.pivot(index="bandwidth_factor", columns="family", values="step_s")
    assert list(winners) == list(rows.idxmin(axis=1))
    figure = sweep_lines(sweep)
    assert sweep.sentence() in figure.seen
    assert sweep.gbit_per_s(2.0) == 2.0 * sweep.gbit_per_s(1.0)


def test_bubbles_shrink_with_microbatches():
    table = bubble_table(SMALL, schedules=("1f1b",), num_microbatches=(2, 8))

    assert table["bubble_fraction"].is_monotonic_decreasing
    assert table["free_links"].tolist() == [2 / 4, 2 / 10]
    assert "2 schedules" not in bubble_figure(table).seen


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("family", "hybrid", "family must be one of single, pipeline"),
        ("num_sequences", 0, "num_sequences"),
        ("bandwidth_factor", 0.0, "bandwidth_factor"),
    ],
)
def test_wrong_settings_are_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **{field: value})


def test_the_worlds_of_the_tests_are_those_that_are_shipped(scene):
    assert scene.topology.index_of == read_topology("east_central_west").index_of
