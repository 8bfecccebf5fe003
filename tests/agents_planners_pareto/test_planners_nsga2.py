"""Fronts by enumeration, by branch and bound and by NSGA-II, against each other and by hand."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import all_plans, drawn_case, joined, with_memory
from strategies import cases, priced_topologies, unit_workload, workloads

from agents.decision.depths import DEPTHS
from agents.planners.pareto.exact_front import exact_front
from agents.planners.pareto.fronts import steady_judge
from agents.planners.pareto.indicators import coverage, non_dominated
from agents.planners.pareto.nsga2 import nsga2
from agents.planners.pareto.plan_objectives import (
    OBJECTIVES,
    TIME_COST_USED_UTILISATION,
    TIME_COST_UTILISATION,
    WITH_ACTIVATIONS,
    figures_of_plans,
    link_prices,
)
from agents.planners.search.search import search
from agents.planners.search.search_moves import plans_of_orders
from des import NO_CORRECTIONS, InfeasiblePlacementError, Placement, Plan, simulate
from des.views.prices import MissingPriceError, cost_of

FEW = ("1f1b", "gpipe")


def priced(topology, seed):
    rng = np.random.default_rng(seed)
    links = tuple(replace(one, price_usd_per_gb=float(rng.lognormal())) for one in topology.links)
    return replace(topology, links=links)


def priced_case(seed, num_domains, num_layers):
    topology, workload = drawn_case(seed, num_domains, num_layers)
    return priced(topology, seed), replace(workload, num_microbatches=4)


def judge_of(topology, workload, schedules=DEPTHS):
    return steady_judge(topology, workload, NO_CORRECTIONS, schedules)


def every_front(topology, workload, objectives, schedules=FEW):
    """Points of the front by simulating every plan."""
    plans = all_plans(topology.num_domains, workload.num_layers, schedules)
    figures = figures_of_plans(topology, workload, plans)
    points = np.array([one.point(objectives) for one in figures if one.fits_memory])
    return points[non_dominated(points)] if len(points) else points


def test_two_domains_on_free_links_make_a_front_of_two_by_hand():
    """Both at once: (2 + 1) x 6 s for 2 microbatches of 4 layers of 3 s, and 2 x 2 messages of 1 B.

    Alone it is 2 x 12 s and no message. All links have the price of a byte.
    """
    workload = unit_workload([(1.0, 2.0)] * 4, num_microbatches=2, message_bytes=1.0)
    front = exact_front(joined([1.0, 1.0]), workload, schedules=("1f1b",))

    assert front.is_proven
    assert [one.time_s_per_token * 2 for one in front.figures] == [18.0, 24.0]
    assert [one.cost_per_token * 2 for one in front.figures] == [4.0, 0.0]
    assert [one.utilisation for one in front.figures] == [24 / (2 * 18.0), 24 / (2 * 24.0)]
    assert [one.used_utilisation for one in front.figures] == [24 / (2 * 18.0), 1.0]


@pytest.mark.parametrize(
    "objectives", [TIME_COST_UTILISATION, TIME_COST_USED_UTILISATION, WITH_ACTIVATIONS]
)
@settings(max_examples=examples(6), deadline=None)
@given(seed=st.integers(0, 500))
def test_full_enumeration_finds_the_front_of_all_simulated_plans(objectives, seed):
    topology, workload = priced_case(seed, 3, 5)
    expected = every_front(topology, workload, objectives)
    if not len(expected):
        with pytest.raises(InfeasiblePlacementError, match="no plan"):
            exact_front(topology, workload, schedules=FEW, objectives=objectives)
        return
    front = exact_front(topology, workload, schedules=FEW, objectives=objectives)

    assert front.is_proven
    assert coverage(front.points, expected, 1e-9) == 1.0
    assert coverage(expected, front.points, 1e-9) == 1.0


@pytest.mark.parametrize("objectives", [TIME_COST_UTILISATION, TIME_COST_USED_UTILISATION])
@pytest.mark.parametrize("seed", range(8))
def test_branch_and_bound_finds_the_front_of_full_enumeration(objectives, seed):
    topology, workload = priced_case(seed, 4, 10)
    try:
        full = exact_front(topology, workload, objectives=objectives)
    except InfeasiblePlacementError:
        pytest.skip("no plan of this world fits")
    bounded = exact_front(topology, workload, objectives=objectives, most_enumerated=1)

    assert full.is_proven
    assert bounded.is_proven
    assert bounded.num_judged < full.num_judged
    assert coverage(bounded.points, full.points, 1e-9) == 1.0
    assert coverage(full.points, bounded.points, 1e-9) == 1.0


@pytest.mark.parametrize("num_domains", [4, 6])
def test_without_steps_nothing_is_proven(num_domains):
    topology, workload = priced_case(0, num_domains, 10)

    assert not exact_front(topology, workload, max_steps=1, most_enumerated=1).is_proven


def test_the_quickest_plan_of_the_front_is_that_of_the_search():
    topology, workload = priced_case(1, 5, 30)
    front = exact_front(topology, workload)
    found = search(topology, workload, is_exact=True)

    quickest_s = front.figures[0].time_s_per_token * workload.tokens_per_iteration
    assert quickest_s == pytest.approx(found.makespan_s)


def test_too_many_domains_are_refused():
    topology, workload = priced_case(0, 7, 20)

    with pytest.raises(ValueError, match="at most 6 domains"):
        exact_front(topology, workload)


@pytest.mark.parametrize("seed", [0, 3])
def test_nsga2_covers_most_of_a_small_front_and_never_beats_it(seed):
    topology, workload = priced_case(seed, 4, 10)
    exact = exact_front(topology, workload)
    front = nsga2(judge_of(topology, workload), num_evaluations=4000, population_size=100)

    assert coverage(front.points, exact.points) >= 0.8
    assert coverage(exact.points, front.points, 1e-9) == 1.0


def test_a_world_of_few_plans_comes_to_an_end_and_its_front_is_complete():
    """Two domains and four layers: 8 placements, far fewer plans than evaluations."""
    topology, workload = priced_case(1, 2, 4)
    front = nsga2(judge_of(topology, workload, FEW), population_size=50)

    assert front.num_judged < 20_000
    assert front.figures == exact_front(topology, workload, schedules=FEW).figures


def test_equal_seeds_give_equal_fronts_and_the_evaluations_are_counted():
    topology, workload = priced_case(2, 5, 12)
    told = []

    def front(seed):
        return nsga2(
            judge_of(topology, workload),
            num_evaluations=500,
            population_size=50,
            seed=seed,
            each_generation=told.append,
        )

    first = front(1)

    assert first.num_judged == told[-1] >= 500
    assert first.figures == front(1).figures
    assert first.points.tolist() != front(2).points.tolist()


def test_exploring_adds_to_a_front_and_takes_nothing_away():
    topology, workload = priced_case(4, 5, 20)
    few = {"num_evaluations": 200, "population_size": 50}
    plain = nsga2(judge_of(topology, workload), **few)
    explored = nsga2(judge_of(topology, workload), **few, explores=True)
    exact = exact_front(topology, workload)

    assert coverage(explored.points, plain.points, 1e-9) == 1.0
    assert coverage(explored.points, exact.points) > coverage(plain.points, exact.points)


def test_plans_of_a_front_fit_where_memory_is_tight():
    """A domain holds the state and all microbatches of two of four layers, no more."""
    workload = unit_workload([(1.0, 2.0)] * 4, num_microbatches=4)
    topology = with_memory(joined([1.0, 1.0, 1.0]), [2 * (16.0 + 4.0)] * 3)
    judge = judge_of(topology, workload, ("gpipe",))
    front = nsga2(judge, num_evaluations=200, population_size=20)

    assert all(one.fits_memory for one in front.figures)
    assert {len(one.plan.placement.stages) for one in front.figures} <= {2, 3}


def test_a_job_that_nothing_holds_is_refused():
    workload = unit_workload([(1.0, 2.0)] * 4, num_microbatches=4)
    topology = with_memory(joined([1.0, 1.0]), [10.0] * 2)

    with pytest.raises(InfeasiblePlacementError, match="no plan was found"):
        exact_front(topology, workload)
    with pytest.raises(InfeasiblePlacementError, match="no plan was found"):
        nsga2(judge_of(topology, workload))


@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_objectives_of_many_plans_are_those_of_each_simulated(data):
    topology = data.draw(priced_topologies(fully=True))
    topology = replace(topology, dynamics=joined([1.0]).dynamics)
    workload = data.draw(workloads(num_layers=data.draw(st.integers(1, 4)), max_microbatches=4))
    judge = steady_judge(topology, workload, NO_CORRECTIONS, FEW)
    size = data.draw(st.integers(1, judge.judge.most_stages))
    order = tuple(data.draw(st.permutations(range(topology.num_domains)))[:size])
    plans = plans_of_orders([order], range(len(FEW)), judge.judge.most_stages)
    judge.judge.fill(plans)
    points, _ = judge.points(plans, OBJECTIVES)
    for row in range(len(FEW)):
        (figures,) = figures_of_plans(topology, workload, [judge.judge.plan(plans, row)])
        if figures.fits_memory:
            assert points[row] == pytest.approx(figures.point(OBJECTIVES))
        else:
            assert np.isinf(points[row]).all()


@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_communication_cost_is_what_the_links_charge(data):
    """By `des.views.prices`, for any plan over any routes."""
    topology, workload, plan = data.draw(cases())
    topology = priced(topology, 0)
    domains = tuple(replace(one, gpu_price_usd_per_hour=0.0) for one in topology.domains)
    topology = replace(topology, domains=domains)
    result = simulate(topology, workload, plan, NO_CORRECTIONS)
    (figures,) = figures_of_plans(topology, workload, [plan])

    cost = cost_of(result, topology)
    assert figures.cost_per_token * workload.tokens_per_iteration == pytest.approx(cost.total_usd)


def test_links_without_prices_charge_a_byte_a_byte_and_some_prices_are_refused():
    topology = joined([1.0, 1.0])
    half = replace(topology.links[0], price_usd_per_gb=1.0), topology.links[1]

    assert link_prices(topology) == (1.0, 1.0)
    with pytest.raises(MissingPriceError, match="price_usd_per_gb must be given"):
        link_prices(replace(topology, links=half))


def test_an_unknown_objective_is_refused():
    topology, workload = priced_case(0, 2, 4)

    with pytest.raises(ValueError, match=r"must be some of time_s_per_token.*got 'beauty'"):
        exact_front(topology, workload, objectives=("beauty",))


def test_figures_hold_for_plans_of_any_kind():
    """Two replicas of a domain each: both are in use."""
    workload = unit_workload([(1.0, 2.0)] * 2, num_microbatches=2)
    plan = Plan(
        placement=Placement(domain_of_layer=(0, 0)), replicas=(Placement(domain_of_layer=(1, 1)),)
    )
    (figures,) = figures_of_plans(joined([1.0, 1.0, 2.0]), workload, [plan])

    assert figures.used_utilisation == pytest.approx(figures.utilisation * 2)
