"""The search for order, split and depth together: by hand, and what it promises."""

import dataclasses

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import movements
from search_cases import FEW, drawn_case, joined, least_s, with_memory
from strategies import free_world, unit_workload

from agents.decision.depths import DEPTHS
from agents.planners.search.search import Found, search
from des import (
    NO_CORRECTIONS,
    InfeasiblePlacementError,
    IterationResult,
    Placement,
    Plan,
    Topology,
    Transport,
    Workload,
    simulate,
)
from des.compiled.simulate import simulate_compiled


@pytest.mark.parametrize("is_exact", [False, True])
def test_equal_domains_with_free_links_share_evenly(is_exact):
    """Makespan 3 (m + p - 1) of the closed form, under plain 1F1B as depth gains nothing."""
    workload = unit_workload([(1, 2)] * 4, num_microbatches=10)
    result = search(free_world(4), workload, is_exact=is_exact)

    assert result.makespan_s == 39.0
    assert result.plan == Plan(placement=Placement.even(4, 4), schedule="1f1b")
    assert result.is_proven == is_exact


def test_slow_links_leave_the_job_in_the_fastest_domain():
    """Two layers of 3 s and ten microbatches: 30 s at 2 FLOP/s, while a message takes 100 s."""
    workload = unit_workload([(1, 2)] * 2, num_microbatches=10, message_bytes=1.0)
    result = search(joined([1.0, 2.0, 1.5], bandwidth=0.01), workload, is_exact=True)

    assert result.plan.placement.domain_of_layer == (1, 1)
    assert result.makespan_s == 30.0


def far_apart(memory_bytes=1e30):
    """Two domains with 200 s of flight between them, and five microbatches of two layers.

    A pass takes 100 s, so all in one domain take 2000 s. With two stages the last one would be
    busy from 300 to 1300 s and the last gradient back at 1500 s, for an end at 1600 s. That takes
    five microbatches under way, as in 1F1B at four times the depth. At twice the depth three are,
    F3 leaves after B0, at 900 s, and F4 at 1100 s; it arrives at 1300 s, is back at 1700 and
    done at 1800 s. With two, as in plain 1F1B, a round trip of 800 s is made three times.
    """
    topology = joined([1.0, 1.0], latency_s=200.0, memory_bytes=memory_bytes)
    return topology, unit_workload([(100, 100)] * 2, num_microbatches=5)


@pytest.mark.parametrize(
    ("schedules", "makespan_s", "schedule"),
    [
        (("1f1b",), 2000.0, "1f1b"),
        (("1f1b", "1f1b_2x"), 1800.0, "1f1b_2x"),
        (DEPTHS, 1600.0, "1f1b_4x"),
    ],
)
def test_depth_hides_long_links_as_far_as_it_may(schedules, makespan_s, schedule):
    result = search(*far_apart(), schedules=schedules, is_exact=True)

    assert (result.makespan_s, result.plan.schedule) == (makespan_s, schedule)


@pytest.mark.parametrize(
    ("memory_bytes", "makespan_s", "schedule"),
    [
        (18.0, 2400.0, "1f1b"),
        (20.9, 1800.0, "1f1b_2x"),
        (21.0, 1600.0, "1f1b_4x"),
    ],
)
def test_memory_limits_depth(memory_bytes, makespan_s, schedule):
    """A layer takes 16 bytes of state and one for each microbatch under way: 2, 3 or 5."""
    result = search(*far_apart(memory_bytes), is_exact=True)

    assert (result.makespan_s, result.plan.schedule) == (makespan_s, schedule)


def test_memory_decides_the_split():
    """Of six layers a domain of 36 bytes holds two: 16 of state and one a microbatch each."""
    workload = unit_workload([(1, 2)] * 6, num_microbatches=2)
    topology = with_memory(joined([9.0, 1.0, 1.0]), [36.0] * 3)
    result = search(topology, workload)

    assert [stage.num_layers for stage in result.plan.placement.stages] == [2, 2, 2]


@pytest.mark.parametrize("is_exact", [False, True])
def test_a_job_that_fits_nowhere_is_refused_with_what_it_lacks(is_exact):
    """Two of five layers fit into each of two domains: one must hold three."""
    workload = unit_workload([(1, 2)] * 5, num_microbatches=1)
    topology = with_memory(joined([1.0, 1.0]), [34e9, 34.0])

    assert search(topology, workload).plan.placement.domain_of_layer == (0,) * 5
    with pytest.raises(
        InfeasiblePlacementError,
        match=r"search: no plan was found that fits; at best, domain B must hold at most 0\.0 GB",
    ):
        search(with_memory(topology, [34.0, 34.0]), workload, is_exact=is_exact)


@pytest.mark.parametrize("num_domains", [4, 7])
def test_equal_arguments_give_equal_results(num_domains):
    case = drawn_case(1, num_domains, 14)

    assert search(*case, seed=5) == search(*case, seed=5)


@settings(max_examples=examples(FEW))
@given(seed=st.integers(0, 2**32 - 1), is_exact=st.booleans())
def test_names_of_domains_do_not_matter(seed, is_exact):
    topology, workload = drawn_case(seed, 3, 8)
    other = dict(zip("ABC", ("Zurich", "Oslo", "Aachen"), strict=True))
    renamed = Topology.of(
        [dataclasses.replace(domain, name=other[domain.name]) for domain in topology.domains],
        [
            dataclasses.replace(link, source=other[link.source], target=other[link.target])
            for link in topology.links
        ],
    )

    assert search(renamed, workload, is_exact=is_exact) == search(
        topology, workload, is_exact=is_exact
    )


@settings(max_examples=examples(FEW))
@given(seed=st.integers(0, 2**32 - 1), factor=st.floats(1.0, 4.0))
def test_faster_links_never_slow_the_best_plan_down(seed, factor):
    topology, workload = drawn_case(seed, 4, 10)
    ones = np.ones(len(topology.links))
    faster = topology.scaled(factor * ones, ones / factor)

    slow, fast = (search(each, workload, is_exact=True) for each in (topology, faster))
    assert fast.makespan_s <= slow.makespan_s * (1.0 + 1e-12)


@settings(max_examples=examples(10))
@given(seed=st.integers(0, 2**32 - 1), movement=movements())
def test_links_that_move_are_taken_at_their_base_figures(seed, movement):
    topology, workload = drawn_case(seed, 3, 6)

    assert search(dataclasses.replace(topology, movement=movement), workload) == search(
        topology, workload
    )


def slowed(
    topology: Topology, workload: Workload, plan: Plan, found=NO_CORRECTIONS
) -> IterationResult:
    """A simulator in whose world links have a tenth of the bandwidth."""
    factors = np.ones(len(topology.links))
    return simulate(topology.scaled(0.1 * factors, factors), workload, plan, found)


@pytest.mark.parametrize("seed", range(3))
def test_another_simulator_is_asked_about_every_plan(seed):
    topology, workload = drawn_case(seed, 3, 4)
    result = search(topology, workload, simulator=slowed, is_exact=True, max_judged=50_000)

    assert result.makespan_s == least_s(topology, workload, simulator=slowed)
    assert result.is_proven


@pytest.mark.parametrize("rules", [{"sharing": "fair"}, {"endpoints": "one_in_flight"}])
def test_other_transports_are_searched_with_what_is_left_to_judge(rules):
    topology, workload = drawn_case(0, 4, 6)
    topology = dataclasses.replace(topology, transport=Transport(**rules))

    result = search(topology, workload, simulator=simulate_compiled)
    proven = search(
        topology, workload, simulator=simulate_compiled, is_exact=True, max_judged=50_000
    )
    assert proven.is_proven
    assert proven.makespan_s <= result.makespan_s <= 1.02 * proven.makespan_s


@pytest.mark.parametrize("num_domains", [4, 8])
@pytest.mark.parametrize("max_judged", [1, 7, 1000])
def test_a_search_keeps_to_its_budget(num_domains, max_judged):
    topology, workload = drawn_case(2, num_domains, 12)
    result = search(topology, workload, max_judged=max_judged)

    assert 1 <= result.num_judged <= max_judged
    assert result.makespan_s == simulate(topology, workload, result.plan).makespan_s
    if num_domains == 4:
        assert not search(topology, workload, max_judged=max_judged, is_exact=True).is_proven


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedules": ()}, r"schedules must be one or more, each once, got \(\)"),
        ({"schedules": ("1f1b", "1f1b")}, "each once, got"),
        ({"schedules": ("1f1b", "greedy")}, "must be static, such as 1f1b, .*; got 'greedy'"),
        ({"schedules": ("fifo",)}, "schedule: must be one of"),
        ({"max_judged": 0}, "search: max_judged must be"),
        ({"seed": -1}, "search: seed must be"),
        ({"is_exact": True}, "is_exact must be False for more than 6 domains, got True for 7"),
    ],
)
def test_arguments_out_of_range_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        search(*drawn_case(0, 7, 7), **changes)


def test_what_is_found_is_a_value():
    plan = Plan(placement=Placement(domain_of_layer=(0,)))
    found = Found(plan=plan, makespan_s=1.0, num_judged=1, is_proven=True)

    assert found == dataclasses.replace(found)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.num_judged = 2
