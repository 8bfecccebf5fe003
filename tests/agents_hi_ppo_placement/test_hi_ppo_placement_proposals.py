"""Proposed plans: splits, bounds, and what looking ahead finds."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from search_cases import drawn_case, fits
from small_policies import situation_on

from agents.decision.depths import DEPTHS
from agents.decision.levels import level_of
from agents.decision.situation import Preference, Situation
from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.placement_policy import PlacementPolicy
from agents.hi_ppo.placement.proposals import PlacementCandidates, Proposer
from agents.hi_ppo.policies import Policies, shipped
from agents.judge.look_ahead import LookAhead, PlanJudge, aim_of, plan_costs
from agents.judge.steady_judge import MISFIT
from agents.planners.search.search import search
from agents.planners.search.search_moves import plans_of_orders
from des import InfeasiblePlacementError, check_memory, simulate
from des.compiled.many.least_times import least_time_s
from des.compiled.many.paced import CountedPlans
from des.compiled.many.recurrence import makespans
from des.world.domain_load import DomainLoad
from scenarios.suites import suite

POLICY = PlacementPolicy(
    PlacementArchitecture(width=16, edge_width=8, num_rounds=1), torch.Generator().manual_seed(0)
)


def random_plans(judge: PlanJudge, seed: int, num: int = 60):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, judge.most_stages + 1, num).tolist()
    orders = [tuple(rng.permutation(judge.num_domains)[:size].tolist()) for size in sizes]
    return plans_of_orders(orders, range(len(DEPTHS)), judge.most_stages)


@pytest.mark.parametrize("seed", range(6))
def test_quick_splits_are_as_good_as_careful_ones(seed):
    """As many fit, and they are as fast on average, to 0.5 %."""
    topology, workload = drawn_case(seed, 6, 30)
    judge = PlanJudge(workload, 6)
    job = judge.job_of(topology)
    plans = random_plans(judge, seed)

    judge.fill(job, plans)
    careful = judge.scores(job, plans)
    levels_s = judge.fill_by(job, plans, np.ones(plans.domain.shape))
    quick = judge.scores(job, plans)

    fitting = careful < MISFIT
    assert (np.isfinite(levels_s) == (quick < MISFIT)).all()
    assert ((quick < MISFIT) == fitting).all()
    assert np.log(quick[fitting] / careful[fitting]).mean() == pytest.approx(0.0, abs=0.005)


def test_weights_move_layers_to_their_stages():
    topology, workload = drawn_case(1, 3, 24)
    judge = PlanJudge(workload, 3)
    free = np.zeros((3, 3))
    job = judge.job_of(topology)._replace(
        capacity_bytes=np.full(3, np.inf), wire_s=free, latency_s=free
    )
    plans = plans_of_orders([(0, 1, 2)] * 2, [0], 3)

    judge.fill_by(job, plans, np.array([[1.0, 1.0, 1.0], [1.6, 1.0, 1.0]]))

    assert plans.end_layer[1, 0] > plans.end_layer[0, 0]
    assert plans.end_layer[:, 2].tolist() == [24, 24]


@pytest.mark.parametrize("seed", range(6))
def test_no_iteration_is_quicker_than_its_bound(seed):
    topology, workload = drawn_case(seed, 6, 30)
    judge = PlanJudge(workload, 6)
    job = judge.job_of(topology)
    plans = random_plans(judge, seed)
    judge.fill_by(job, plans, np.random.default_rng(seed).uniform(0.5, 2.0, plans.domain.shape))
    times_s = judge.scores(job, plans)
    figures = judge.tools(job).figures

    for row in np.flatnonzero(times_s < MISFIT).tolist():
        assert least_time_s(figures, plans, row, np.inf) <= times_s[row] * (1.0 + 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_plans_with_a_limit_take_what_others_take_and_are_given_up_only_where_slower(seed):
    """Without limits times are equal to the last bit; with them, below the limit they still are."""
    topology, workload = drawn_case(seed, 6, 30)
    judge = PlanJudge(workload, 6)
    job = judge.job_of(topology)._replace(capacity_bytes=np.full(6, np.inf))
    plans = random_plans(judge, seed)
    judge.fill_by(job, plans, np.ones(plans.domain.shape))
    expected_s = judge.scores(job, plans)
    tools, count = judge.tools(job), len(expected_s)
    ordered = np.lexsort((plans.num_stages, plans.schedule))
    counts = np.full(count, workload.num_microbatches)
    for limit_s in (np.inf, float(np.median(expected_s))):
        found_s = np.full(count, np.nan)
        batch = CountedPlans(job, tools.paces, plans, counts)
        makespans(tools.scratch, batch, ordered, count, np.full(count, limit_s), found_s)
        is_below = expected_s < limit_s
        assert (found_s[is_below] == expected_s[is_below]).all()
        assert (found_s[~is_below] >= limit_s).all()


@pytest.mark.parametrize("policy", [POLICY, None], ids=["policy", "random"])
def test_proposed_plans_fit_and_take_what_the_simulator_says(policy):
    topology, workload = drawn_case(2, 5, 20)

    found = Proposer(policy).propose(situation_on(topology, workload))

    assert len(set(found.plans)) == len(found.plans) == len(found.costs)
    assert (np.diff(found.costs) >= 0.0).all()
    for plan, time_s in zip(found.plans, found.iteration_s.tolist(), strict=True):
        check_memory(topology, workload, plan)
        assert simulate(topology, workload, plan).makespan_s == time_s
    assert {*found.response_s} == {"policy", "look_ahead"}


@pytest.mark.parametrize("seed", range(8))
def test_a_long_look_ahead_finds_the_best_plan_of_few_domains(seed):
    """Even from orders of an untrained policy, to 0.5 %."""
    topology, workload = drawn_case(seed, 4, 12)
    how = LookAhead(budget=20_000, width=64, num_refined=64, most_behind=np.inf)

    found = Proposer(POLICY, look_ahead=how).propose(situation_on(topology, workload))

    best_s = search(topology, workload, is_exact=True).makespan_s
    assert best_s * (1.0 - 1e-12) <= found.iteration_s[0] <= 1.005 * best_s


def test_a_longer_look_ahead_finds_no_worse_plan():
    topology, workload = drawn_case(3, 8, 40)
    situation = situation_on(topology, workload)
    found = [
        Proposer(POLICY, look_ahead=LookAhead(budget=budget, num_refined=8)).propose(situation)
        for budget in (200, 1000, 5000)
    ]

    assert found[0].costs[0] >= found[1].costs[0] >= found[2].costs[0]
    assert [one.num_judged for one in found] == sorted(one.num_judged for one in found)
    assert found[0].num_judged < 2000


def the_same(one: PlacementCandidates, other: PlacementCandidates) -> bool:
    return one.plans == other.plans and (one.iteration_s == other.iteration_s).all()


def test_equal_arguments_give_equal_proposals():
    situation = situation_on(*drawn_case(3, 7, 30))
    proposer = Proposer(POLICY)

    first = proposer.propose(situation, seed=5)

    assert the_same(first, proposer.propose(situation, seed=5))
    assert the_same(first, Proposer(POLICY).propose(situation, seed=5))


def test_the_last_plan_and_the_best_near_it_are_candidates():
    """Itself, no worse one by depth alone, and no worse one by split, each of its own level."""
    topology, workload = drawn_case(2, 5, 20)
    found = Proposer(POLICY).propose(situation_on(topology, workload), num_plans=40)
    last = replace(found.plans[-1], schedule="1f1b")

    near = Proposer(POLICY).propose(situation_on(topology, workload, last_plan=last))

    costs = dict(zip(near.plans, near.costs.tolist(), strict=True))
    by_level = {
        level: min(cost for plan, cost in costs.items() if level_of(last, plan) in level)
        for level in (("nothing",), ("nothing", "depth"), ("nothing", "depth", "split"))
    }
    assert list(by_level.values()) == sorted(by_level.values(), reverse=True)
    depths = [
        simulate(topology, workload, replace(last, schedule=name)).makespan_s
        for name in DEPTHS
        if fits(topology, workload, replace(last, schedule=name))
    ]
    assert by_level["nothing", "depth"] == pytest.approx(np.log(min(depths)))


def test_communication_alone_leads_to_the_fewest_and_cheapest_borders():
    topology, workload = drawn_case(0, 4, 12)
    rich = replace(
        topology,
        domains=tuple(replace(one, gpu_memory_bytes=1e15) for one in topology.domains),
    )
    preference = Preference(time=0.0, communication=1.0)

    found = Proposer(POLICY).propose(situation_on(rich, workload, preference=preference))

    assert len(found.plans[0].placement.stages) == 1
    assert found.costs[0] == 0.0


def test_costs_are_those_of_the_preference():
    topology, workload = drawn_case(0, 4, 12)
    judge = PlanJudge(workload, 4)
    job = judge.job_of(topology)
    aim = aim_of(topology, job, Preference(time=0.5, utilisation=0.2, communication=0.3))
    plans = plans_of_orders([(0,), (0, 1, 2, 3)], [0], 4)

    costs = plan_costs(aim, plans, np.array([10.0, 10.0]))

    assert costs == pytest.approx([0.7 * np.log(10.0), 0.7 * np.log(10.0) + 0.3 * np.log(2.0)])


def test_memory_that_other_jobs_hold_is_not_used():
    topology, workload = drawn_case(2, 5, 20)
    free = Proposer(POLICY).propose(situation_on(topology, workload))
    first = free.plans[0].placement.stages[0].domain
    loads = tuple(
        DomainLoad(memory_occupancy=0.999999 if domain == first else 0.0) for domain in range(5)
    )

    found = Proposer(POLICY).propose(situation_on(topology, workload, loads=loads))

    assert all(stage.domain != first for stage in found.plans[0].placement.stages)


def test_nothing_that_fits_is_an_error():
    topology, workload = drawn_case(2, 5, 20)
    poor = replace(
        topology, domains=tuple(replace(one, gpu_memory_bytes=1.0) for one in topology.domains)
    )

    with pytest.raises(InfeasiblePlacementError, match=r"proposer: no plan of \d+ judged fits"):
        Proposer(POLICY).propose(situation_on(poor, workload))


def test_networks_that_need_relays_get_plans_too():
    """A star: messages between its ends are relayed."""
    topology, workload = drawn_case(2, 4, 12)
    hub = topology.domains[0].name
    star = replace(
        topology,
        links=tuple(link for link in topology.links if hub in {link.source, link.target}),
    )

    found = Proposer(POLICY, look_ahead=LookAhead(num_samples=6)).propose(
        situation_on(star, workload)
    )

    for plan, time_s in zip(found.plans[:3], found.iteration_s.tolist(), strict=False):
        assert simulate(star, workload, plan).makespan_s == pytest.approx(time_s)


def test_orders_that_are_too_short_for_the_activations_get_the_other_domains_as_well():
    """Where traffic alone counts, the shipped policy draws orders that just hold the state."""
    world = suite("eval_static").world(0, seed=1)
    situation = Situation(
        topology=world.topology,
        base=world.topology,
        workload=world.workload,
        epoch=0,
        epoch_s=world.epoch_s,
        replacement=world.replacement,
        preference=Preference(time=0.0, communication=1.0),
    )

    proposer = Proposer(Policies.load(shipped(0)).placement, look_ahead=LookAhead(num_samples=8))
    found = proposer.propose(situation)

    for plan in found.plans:
        check_memory(world.topology, world.workload, plan)
    assert found.num_judged > 0
