"""Controls of trained policies: schedulers of which a part has learnt nothing."""

from dataclasses import replace

import numpy as np
import pytest
from small_policies import JOB, drawn, placement_policy, situation_on

from agents.hi_ppo.controls import (
    CONTROLS,
    control_proposer,
    control_scheduler,
    neighbour_orders,
    untrained_policies,
)
from agents.hi_ppo.placement.features import features_of
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.policies import Policies, shipped
from agents.judge.look_ahead import PlanJudge
from agents.planners.choice.chains import grow_chain
from des import Link, Topology, migration_s, read_topology, simulate

RING = replace(read_topology("east_central_west"), movement=None)


def line_of_domains(bandwidths: dict[tuple[int, int], float]) -> Topology:
    """Domains A to E, with links both ways at these bandwidths; 1 MB/s between others."""
    domains = tuple(replace(RING.domains[0], name=name) for name in "ABCDE")
    links = tuple(
        Link(
            source=domains[here].name,
            target=domains[there].name,
            bandwidth_bytes_per_s=bandwidths.get((min(here, there), max(here, there)), 1e6),
            latency_s=0.01,
        )
        for here in range(5)
        for there in range(5)
        if here != there
    )
    return replace(RING, domains=domains, links=links)


def test_chains_follow_the_quickest_link_to_a_domain_not_yet_taken():
    """From C the link to A is the quickest, from there that to E, then B (5), then D."""
    world = line_of_domains({(0, 2): 9e9, (0, 4): 8e9, (1, 4): 5e9, (2, 4): 7e9})
    judge = PlanJudge(JOB, 5)
    job = judge.job_of(world)
    orders = neighbour_orders(features_of(world, job, job), 5, 24, 3)
    whole = {
        tuple(row) for row, size in zip(orders.domains, orders.sizes, strict=True) if size == 5
    }

    assert (2, 0, 4, 1, 3) in whole
    assert (orders.sizes[:5] == 5).all()
    assert {int(row[0]) for row in orders.domains[:5]} == set(range(5))
    speed = np.zeros((5, 5))
    for link in world.links:
        speed["ABCDE".index(link.source), "ABCDE".index(link.target)] = link.bandwidth_bytes_per_s
    for row, size in zip(orders.domains, orders.sizes, strict=True):
        assert tuple(row[:size]) == grow_chain(speed, int(row[0]))[:size]


def test_orders_are_no_longer_than_a_plan_may_be_and_the_same_for_a_seed():
    world = line_of_domains({})
    judge = PlanJudge(JOB, 5)
    job = judge.job_of(world)
    features = features_of(world, job, job)
    first, again = (neighbour_orders(features, 3, 16, 7) for _ in range(2))

    assert first.sizes.max() == 3
    assert np.array_equal(first.domains, again.domains)


def test_a_policy_draws_by_itself():
    with pytest.raises(ValueError, match="draw must be None where a policy draws"):
        Proposer(placement_policy(), draw=neighbour_orders)


@pytest.mark.parametrize("control", CONTROLS)
def test_a_control_decides_valid_plans_and_only_the_untrained_one_has_new_moves(control):
    trained = Policies.load(shipped())
    scheduler, last, spent_s = control_scheduler(trained, control)(), None, 0.0
    for epoch in range(4):
        situation = situation_on(drawn(epoch), base=RING, epoch=epoch, last_plan=last)
        plan = scheduler.decide(situation).plan
        spent_s += simulate(situation.topology, JOB, plan).makespan_s
        if last is not None:
            spent_s += migration_s(situation.topology, JOB, last, plan)
        last = plan

    assert 0.0 < spent_s < np.inf
    assert (scheduler.moves is trained.moves) == (control != "untrained")


def test_untrained_weights_are_drawn_by_their_seed():
    trained = Policies.load(shipped())
    weights = [
        next(untrained_policies(trained.trained_range, seed).placement.parameters())
        for seed in (0, 0, 1)
    ]

    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])
    assert control_proposer("untrained").policy is not None
