"""Groups of domains by the cost of their messages: by hand and against enumeration."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import drawn_case, fits, joined, small_cases
from strategies import unit_workload, world

from agents.decision.depths import DEPTHS
from agents.decision.problem import PlanningProblem
from agents.planners.dtfm.dtfm import NUM_INDIVIDUALS, NUM_TRIALS, best_groups, dtfm, dtfm_search
from agents.planners.dtfm.dtfm_costs import Costs, bottleneck_matching, shortest_path
from des import InfeasiblePlacementError

FEW = 20


def problem_of(topology, workload, schedules=DEPTHS):
    return PlanningProblem(topology=topology, workload=workload, schedules=schedules)


def two_pairs():
    """A=B and C=D at 4 bytes/s, all others at 1 byte/s."""
    bandwidths = {"AB": 4.0, "BA": 4.0, "CD": 4.0, "DC": 4.0}
    return world(
        "ABCD",
        {a + b: (bandwidths.get(a + b, 1.0), 0.0) for a, b in permutations("ABCD", 2)},
    )


@given(seed=st.integers(0, 10**6), size=st.integers(1, 4), is_coarse=st.booleans())
def test_a_bottleneck_matching_is_the_best_of_all(seed, size, is_coarse):
    costs = np.random.default_rng(seed).uniform(0.0, 4.0, (size, size))
    costs = np.round(costs) if is_coarse else costs
    slowest, columns = bottleneck_matching(costs)

    assert sorted(columns) == list(range(size))
    assert slowest == max(costs[row, column] for row, column in enumerate(columns))
    assert slowest == min(
        max(costs[row, column] for row, column in enumerate(each))
        for each in permutations(range(size))
    )


@given(seed=st.integers(0, 10**6), size=st.integers(1, 6))
def test_a_path_is_the_shortest_of_all(seed, size):
    edges = np.random.default_rng(seed).uniform(1.0, 2.0, (size, size))
    edges += edges.T

    def length(path):
        return sum(edges[here, there] for here, there in pairwise(path))

    found, path = shortest_path(edges)
    assert sorted(path) == list(range(size))
    assert found == pytest.approx(length(path))
    assert found == pytest.approx(min(length(each) for each in permutations(range(size))))


def test_the_cost_of_two_groups_of_two_is_that_drawn_by_hand():
    """Two layers of one parameter, 2 bytes of gradients each; 4 microbatches of 8 bytes.

    Groups AB and CD exchange halves of 1 byte at 4 bytes/s, there and back: 0.5 s. Each replica
    sends its two microbatches of 16 bytes from group to group at 1 byte/s, there and back: 32 s.
    Groups AC and BD exchange for 2 s, and pair A with B and C with D: 8 s.
    """
    workload = unit_workload([(1.0, 2.0)] * 2, num_microbatches=4, message_bytes=8.0)
    costs = Costs(problem_of(two_pairs(), workload), num_stages=2, num_replicas=2)

    assert costs.total_s(((0, 1), (2, 3))) == 32.5
    assert costs.total_s(((0, 2), (1, 3))) == 10.0
    assert costs.matching((0, 2), (1, 3)) == (8.0, (1, 3))


@pytest.mark.parametrize(
    ("message_bytes", "groups"),
    [(8.0, {((0, 2), (1, 3)), ((0, 3), (1, 2))}), (0.0, {((0, 1), (2, 3))})],
)
def test_groups_follow_what_is_dear(message_bytes, groups):
    """Where activations are large fast links are between groups, else inside them."""
    workload = unit_workload([(1.0, 2.0)] * 2, num_microbatches=4, message_bytes=message_bytes)
    costs = Costs(problem_of(two_pairs(), workload), num_stages=2, num_replicas=2)

    found = best_groups(4, costs, np.random.default_rng(0), num_individuals=2, num_trials=2)
    assert found in groups


@pytest.mark.parametrize("seed", range(5))
def test_the_groups_are_the_best_of_all_groupings(seed):
    """Six domains into two groups of two, two left over: 45 groupings."""
    topology, workload = drawn_case(seed, 6, 12)
    costs = Costs(problem_of(topology, workload), num_stages=2, num_replicas=2)
    least_s = min(
        costs.total_s(tuple(sorted((tuple(sorted(each[:2])), tuple(sorted(each[2:4]))))))
        for each in permutations(range(6))
    )

    found = best_groups(6, costs, np.random.default_rng(seed), num_individuals=5, num_trials=20)
    assert costs.total_s(found) == least_s


def test_equal_domains_that_cannot_talk_quickly_train_as_replicas():
    """Messages take 1000 s, gradients 2 ms: two replicas share four microbatches of 12 s."""
    workload = unit_workload([(1.0, 2.0)] * 4, num_microbatches=4, message_bytes=1e6)
    topology = joined([1.0, 1.0], bandwidth=1e3)
    found = dtfm_search(problem_of(topology, workload), np.random.default_rng(0))

    assert (found.num_stages, found.num_replicas) == (1, 2)
    assert 24.0 <= problem_of(topology, workload).judge(found.plan).makespan_s <= 24.1
    assert (found.num_individuals, found.num_trials) == (NUM_INDIVIDUALS, NUM_TRIALS)


def test_layers_that_no_domain_holds_make_a_pipeline():
    """Each domain holds half of the model and what 1F1B keeps of it."""
    workload = unit_workload([(1.0, 2.0)] * 4, num_microbatches=4, message_bytes=1e6)
    topology = joined([1.0, 1.0], bandwidth=1e3, memory_bytes=2 * 16.0 + 2 * 2.0)
    found = dtfm_search(problem_of(topology, workload), np.random.default_rng(0))

    assert (found.num_stages, found.num_replicas) == (2, 1)
    assert fits(topology, workload, found.plan)


@settings(max_examples=examples(FEW))
@given(case=small_cases())
def test_plans_fit_and_are_the_same_again(case):
    topology, workload = case
    problem = problem_of(topology, workload, ("1f1b", "gpipe"))
    try:
        found = dtfm_search(problem, np.random.default_rng(3), num_individuals=2, num_trials=2)
    except InfeasiblePlacementError:
        return
    again = dtfm_search(problem, np.random.default_rng(3), num_individuals=2, num_trials=2)
    assert found == again
    assert fits(topology, workload, found.plan)
    assert len(found.plan.placements) == found.num_replicas
    assert all(len(one.stages) == found.num_stages for one in found.plan.placements)


def test_the_planner_is_the_search_with_its_usual_budget():
    problem = problem_of(*drawn_case(2, 3, 6))
    plan = dtfm(problem, np.random.default_rng(1))
    assert plan == dtfm_search(problem, np.random.default_rng(1)).plan


def test_a_job_that_no_domain_holds_is_refused():
    workload = unit_workload([(1.0, 2.0)] * 4, num_microbatches=4)
    with pytest.raises(InfeasiblePlacementError, match="dtfm: no plan was found"):
        dtfm(problem_of(joined([1.0, 1.0], memory_bytes=1.0), workload), np.random.default_rng(0))
