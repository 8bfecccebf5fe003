"""Other exchanges of copies: all of the same training, and a tree leaves a slow link out."""

from dataclasses import replace

import pytest

from agents.decision.training_job import TrainingJob
from agents.judge.step_times import mean_step
from agents.search.copies import along_tree_s, around_ring_s
from agents.search.exchanges import other_exchanges
from agents.search.settings import BoundSetting, Degrees
from agents.search.shared_parts import SharedParts
from agents.search.workspace import Workspace
from des import NO_CORRECTIONS, DiLoCo, GradientExchange, Placement, Plan, read_topology

WORLD = replace(read_topology("east_central_west"), movement=None)
JOB = TrainingJob(model="llama2_7b", num_sequences=24)
WORKLOAD = JOB.workload(1)
COPIES = Plan(
    placement=Placement.parse("0*32"),
    replicas=(Placement.parse("1*32"), Placement.parse("2*32")),
    schedule="1f1b",
    shares=(9, 8, 7),
)


def others_of(plan: Plan, hub: int | None = None) -> dict[Plan, float]:
    """Other exchanges and their steps, where all links but those of a hub are slow. [s]"""
    links = tuple(
        replace(one, bandwidth_bytes_per_s=2e10 if hub in ends else 2e8)
        for one in WORLD.links
        for ends in [(WORLD.index_of[one.source], WORLD.index_of[one.target])]
    )
    world = replace(WORLD, links=links)
    workspace = Workspace(topology=world, job=JOB, corrections=NO_CORRECTIONS, shared=SharedParts())
    found = [plan, *other_exchanges(workspace.tables, WORKLOAD, plan)]
    return {one: mean_step(world, WORKLOAD, one, NO_CORRECTIONS)[0] for one in found}


@pytest.mark.parametrize("hub", [0, 1, 2])
def test_a_tree_from_the_hub_is_quickest_where_links_between_the_others_are_slow(hub):
    found = others_of(COPIES, hub)
    best = min(found, key=lambda one: found[one])

    assert best.exchange.tree == (0, 0)
    assert best.placement == COPIES.placements[hub]
    assert found[best] < found[COPIES]


@pytest.mark.parametrize("mode", [None, DiLoCo(steps_between=10)])
def test_copies_keep_their_layers_shares_and_way_to_synchronise(mode):
    plan = COPIES if mode is None else replace(COPIES, synchronisation=mode)

    for one in others_of(plan):
        own = dict(zip(one.placements, one.shares, strict=True))
        assert own == dict(zip(COPIES.placements, COPIES.shares, strict=True))
        assert one.synchronisation == plan.synchronisation


def test_two_copies_have_no_tree_and_one_pipeline_no_exchange():
    two = replace(COPIES, replicas=COPIES.replicas[:1], shares=(12, 12))
    shared = replace(COPIES, exchange=GradientExchange(sharded=True))

    assert not any(one.exchange.tree for plan in (two, shared) for one in others_of(plan))
    assert len(others_of(replace(COPIES, replicas=(), shares=()))) == 1


def test_the_estimate_of_a_tree_is_of_its_slowest_link_which_is_not_the_slow_one():
    """All bytes pass each link of the tree from the hub; the ring needs the slow link too."""
    links = tuple(
        replace(one, bandwidth_bytes_per_s=2e10 if "East" in (one.source, one.target) else 2e8)
        for one in WORLD.links
    )
    world = replace(WORLD, links=links)
    workspace = Workspace(topology=world, job=JOB, corrections=NO_CORRECTIONS, shared=SharedParts())
    setting = BoundSetting(
        degrees=Degrees(tensor=1, is_perfect=True),
        microbatch_size=1,
        recomputation="flash",
        gradient_precision="bf16",
        schedule="1f1b",
    )
    groups, num_bytes = ((1,), (0,), (2,)), 1e12

    assert along_tree_s(workspace, setting, groups, num_bytes) == pytest.approx(num_bytes / 2e10)
    assert around_ring_s(workspace, setting, groups, num_bytes) == pytest.approx(
        2 / 3 * num_bytes / 2e8
    )
