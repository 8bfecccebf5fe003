"""Plans of all families for an episode: when each is known, and what rules make of them."""

import pytest
from epoch_cases import HandWorld
from small_policies import JOB, THREE, slowed, with_memory

from agents.decision.families import FAMILIES, family_of
from agents.decision.plan_space import PlanSpace
from agents.replanning.rules import greedy
from agents.replanning.tables import costs_of, tables_of
from agents.replanning.whole_pool import whole_pool
from agents.search.ideal_plans import ideal_plans
from des import InfeasiblePlacementError, domain_memory

SPACE = PlanSpace(families=FAMILIES)
SLOW = slowed(THREE, 0.002)
HAND = HandWorld(epochs=(THREE, SLOW, SLOW, THREE), topology=THREE, workload=JOB)


def every_plan(topology):
    """Best plan of each family."""
    return [one.plan for one in ideal_plans(topology, JOB, SPACE, every_family=True)]


def test_plans_are_known_from_the_first_network_that_yields_them():
    pool = whole_pool(HAND, 0, families=FAMILIES)

    at_base, when_slow = (set(every_plan(topology)) for topology in (THREE, SLOW))
    assert dict(zip(pool.plans, pool.known_from, strict=True)) == {
        **dict.fromkeys(when_slow, 1),
        **dict.fromkeys(at_base, 0),
    }
    assert {family_of(plan) for plan in pool.plans} == set(FAMILIES)
    assert whole_pool(HAND, 0, families=FAMILIES, max_searched=1).plans == tuple(
        plan for plan, epoch in zip(pool.plans, pool.known_from, strict=True) if epoch == 0
    )


def test_the_quickest_comes_first_and_all_fit():
    plans = every_plan(THREE)

    tables = tables_of(HAND, 0, plans)
    assert (tables.base_iteration_s[:-1] <= tables.base_iteration_s[1:]).all()
    for plan in plans:
        assert all(memory.fits for memory in domain_memory(THREE, JOB, plan))


def test_a_rule_leaves_a_family_when_links_get_slow():
    """With links at a five-hundredth a pipeline waits for its messages; one domain does not."""
    pool = whole_pool(HAND, 0)
    tables = tables_of(HAND, 0, pool.plans, known_from=pool.known_from)

    path = greedy(tables)

    families = [family_of(pool.plans[row]) for row in path.tolist()]
    assert families == ["pipeline", "single", "single", "pipeline"]
    assert costs_of(tables, path).moves["order"] == 2  # one domain counts as a pipeline


def test_a_world_without_memory_for_any_plan_is_refused():
    with pytest.raises(InfeasiblePlacementError, match="no plan fits"):
        every_plan(with_memory(THREE, 1e9))
    with pytest.raises(ValueError, match="max_searched"):
        whole_pool(HAND, 0, max_searched=0)
