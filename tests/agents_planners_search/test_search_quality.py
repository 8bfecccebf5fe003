"""The search against all plans there are, and against itself."""

import dataclasses

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import FEW, drawn_case, fits, judge_of, least_of_all_s, least_s, small_cases
from strategies import (
    STATIC_SCHEDULES,
    corrections,
)

from agents.decision.depths import DEPTHS
from agents.planners.search.search import search
from agents.planners.search.search_exact import Enumeration
from agents.planners.search.search_orders import search_some_orders
from des import (
    InfeasiblePlacementError,
    Transport,
    simulate,
)


@settings(max_examples=examples(2 * FEW))
@given(
    case=small_cases(),
    schedules=st.lists(
        st.sampled_from([*STATIC_SCHEDULES, *DEPTHS]), min_size=1, max_size=4, unique=True
    ),
    found=corrections(),
    rules=st.sampled_from(
        [{}, {"window_bytes": 1e6}, {"sharing": "fair"}, {"endpoints": "blocking"}]
    ),
)
def test_an_exact_search_finds_the_best_of_all_plans(case, schedules, found, rules):
    """Over all orders, splits and schedules, or says that none fits."""
    topology, workload = case
    topology = dataclasses.replace(topology, transport=Transport(**rules))
    best_s = least_s(topology, workload, schedules, found)
    arguments = (topology, workload, found)

    if best_s is None:
        with pytest.raises(InfeasiblePlacementError, match=r"search: .* must hold at most"):
            search(*arguments, schedules=schedules, is_exact=True)
        return
    result = search(*arguments, schedules=schedules, is_exact=True)
    assert result.makespan_s == simulate(topology, workload, result.plan, found).makespan_s
    assert result.makespan_s == best_s
    assert fits(topology, workload, result.plan)
    assert result.is_proven


@settings(max_examples=examples(FEW))
@given(case=small_cases())
def test_a_search_finds_a_plan_wherever_one_fits(case):
    topology, workload = case
    best_s = least_s(topology, workload)

    if best_s is None:
        with pytest.raises(InfeasiblePlacementError):
            search(topology, workload)
        return
    result = search(topology, workload)
    assert fits(topology, workload, result.plan)
    assert result.makespan_s >= best_s
    assert not result.is_proven


@pytest.mark.parametrize("first_seed", range(0, 200, 50))
def test_a_search_is_as_good_as_enumeration_over_four_domains(first_seed):
    """Eight layers, 7,160 plans a world; it has found the best in all of 300 worlds so far."""
    for seed in range(first_seed, first_seed + 50):
        case = drawn_case(seed, 4, 8)
        best_s = least_of_all_s(*case)

        assert search(*case).makespan_s <= 1.005 * best_s
        proven = search(*case, is_exact=True)
        assert proven.is_proven
        assert proven.makespan_s == best_s


def test_a_search_is_nearly_as_good_as_the_proven_best_on_larger_worlds():
    gaps = []
    for seed in range(40):
        case = drawn_case(seed, 5, 24)
        proven = search(*case, is_exact=True)
        assert proven.is_proven
        gaps.append(search(*case).makespan_s / proven.makespan_s - 1.0)
    assert min(gaps) == 0.0
    assert max(gaps) <= 0.01
    assert gaps.count(0.0) >= 38


@pytest.mark.parametrize("seed", range(12))
def test_a_search_from_a_few_orders_finds_what_is_best_of_all(seed):
    """As it is done over more than six domains, against the proven best over five."""
    topology, workload = drawn_case(seed, 5, 16)
    judge = judge_of(topology, workload)
    _, score = search_some_orders(judge, np.random.default_rng(seed))

    best_s = search(topology, workload, is_exact=True).makespan_s
    assert best_s <= score <= 1.005 * best_s


def test_the_best_over_seven_domains_is_found_from_any_seed():
    """An exact search over seven is refused, but its enumeration is not."""
    topology, workload = drawn_case(3, 7, 21)
    results = [search(topology, workload, seed=seed) for seed in (0, 1)]
    judge = judge_of(topology, workload)
    every = Enumeration(judge, *search_some_orders(judge, np.random.default_rng(2)))

    assert every.run()
    for result in results:
        assert result.makespan_s == every.best_score
        assert result.makespan_s == simulate(topology, workload, result.plan).makespan_s
