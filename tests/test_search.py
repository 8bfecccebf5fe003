"""The search for plans against enumeration, hand-computed cases, bounds and invariances."""

import dataclasses
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    STATIC_SCHEDULES,
    corrections,
    free_world,
    movements,
    topologies,
    unit_domain,
    unit_workload,
    workloads,
    world,
)

from agents.kernels.steady import Plans
from agents.planners.search import DEPTHS, Found, search
from agents.planners.search_exact import Enumeration
from agents.planners.search_judge import Judge
from agents.planners.search_orders import search_some_orders
from des import (
    NO_CORRECTIONS,
    InfeasiblePlacementError,
    IterationResult,
    Link,
    Placement,
    Plan,
    Topology,
    Transport,
    Workload,
    check_memory,
    simulate,
)
from des.compiled.simulate import simulate_compiled
from des.transformer import BYTES_PER_PARAMETER

FEW = 30
MODEL_BYTES = 16.0
"""Model state of a parameter, of which `unit_workload` has one a layer."""


def all_plans(num_domains, num_layers, schedules):
    """Every contiguous placement under every schedule."""
    return [
        Plan(
            placement=Placement.contiguous(
                order, [end - start for start, end in pairwise((0, *cut, num_layers))]
            ),
            schedule=schedule,
        )
        for num_stages in range(1, min(num_domains, num_layers) + 1)
        for order in permutations(range(num_domains), num_stages)
        for cut in combinations(range(1, num_layers), num_stages - 1)
        for schedule in schedules
    ]


def fits(topology, workload, plan):
    try:
        check_memory(topology, workload, plan)
    except InfeasiblePlacementError:
        return False
    return True


def least_s(topology, workload, schedules=DEPTHS, found=NO_CORRECTIONS, simulator=simulate):
    """Least iteration time of all plans that fit, None if none does."""
    return min(
        (
            simulator(topology, workload, plan, found).makespan_s
            for plan in all_plans(topology.num_domains, workload.num_layers, schedules)
            if fits(topology, workload, plan)
        ),
        default=None,
    )


def with_memory(topology, bytes_of_domain):
    """Give domains memory, all their GPUs together."""
    domains = tuple(
        dataclasses.replace(domain, gpu_memory_bytes=num_bytes / domain.num_gpus)
        for domain, num_bytes in zip(topology.domains, bytes_of_domain, strict=True)
    )
    return dataclasses.replace(topology, domains=domains)


def drawn_case(seed, num_domains, num_layers):
    """Unequal domains, layers and links of which none is like another; memory is tight at times.

    A message takes about 0.1 to 10 times as long as an even stage's forward, and flies for up to
    as long again.
    """
    rng = np.random.default_rng(seed)
    names = "ABCDEFGHIJ"[:num_domains]
    forward_s = rng.uniform(0.5, 1.5, num_layers)
    ratio = np.exp(rng.uniform(np.log(0.1), np.log(10.0))) * num_layers / num_domains
    workload = unit_workload(
        [(one, 2.0 * one) for one in forward_s.tolist()],
        num_microbatches=int(rng.choice([4, 8, 16, 32])),
        message_bytes=1.0,
    )
    links = [
        Link(
            source=one,
            target=other,
            bandwidth_bytes_per_s=float(rng.lognormal(0.0, 0.5) / ratio),
            latency_s=float(rng.uniform(0.0, 1.0) * ratio),
        )
        for one, other in permutations(names, 2)
    ]
    job_bytes = num_layers * (MODEL_BYTES + workload.num_microbatches)
    share = rng.choice([0.5, 1.0, 10.0])
    domains = [
        unit_domain(
            name,
            flops_per_s=float(rng.uniform(0.5, 1.5)),
            memory_bytes=float(job_bytes * share * rng.uniform(0.5, 1.5)),
        )
        for name in names
    ]
    return Topology.of(domains, links), workload


def least_of_all_s(topology, workload):
    """Least iteration time by enumeration in compiled code, whose times are those of `simulate`."""
    judge = judge_of(topology, workload)
    num_layers, most = workload.num_layers, judge.most_stages
    least = np.inf
    for size in range(1, most + 1):
        cuts = np.array(list(combinations(range(1, num_layers), size - 1)), dtype=np.int32)
        ends = np.zeros((len(cuts), most), dtype=np.int32)
        ends[:, : size - 1], ends[:, size - 1] = cuts, num_layers
        for order in permutations(range(topology.num_domains), size):
            domain = np.zeros((1, most), dtype=np.int32)
            domain[0, :size] = order
            for schedule in range(len(DEPTHS)):
                plans = Plans(
                    num_stages=np.full(len(ends), size, dtype=np.int32),
                    schedule=np.full(len(ends), schedule, dtype=np.int32),
                    domain=np.repeat(domain, len(ends), axis=0),
                    end_layer=ends,
                )
                least = min(least, judge.scores(plans).min())
    return least


def judge_of(topology, workload):
    return Judge(
        topology,
        workload,
        NO_CORRECTIONS,
        schedules=DEPTHS,
        simulator=simulate,
        max_judged=None,
    )


# Against enumeration.


@st.composite
def small_cases(draw):
    """A small world, relays included, mostly with memory for but a part of the job a domain."""
    topology = draw(topologies(max_domains=3))
    workload = draw(workloads(num_layers=draw(st.integers(1, 4)), max_microbatches=4))
    share = draw(st.sampled_from([0.5, 0.9, 10.0]))
    job_bytes = 1.0 + BYTES_PER_PARAMETER * sum(workload.num_parameters)
    job_bytes += workload.num_microbatches * sum(workload.activation_bytes)
    return with_memory(topology, [share * job_bytes] * topology.num_domains), workload


@settings(max_examples=2 * FEW)
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


@settings(max_examples=FEW)
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


# By hand.


def joined(flops_per_s, *, bandwidth=1e300, latency_s=0.0, memory_bytes=1e30):
    """Domains of these speeds with equal links between all."""
    names = "ABCDEFGH"[: len(flops_per_s)]
    links = world(names, {a + b: (bandwidth, latency_s) for a, b in permutations(names, 2)}).links
    domains = [
        unit_domain(name, flops_per_s=speed, memory_bytes=memory_bytes)
        for name, speed in zip(names, flops_per_s, strict=True)
    ]
    return Topology.of(domains, links)


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


# What must not matter, and what must.


@pytest.mark.parametrize("num_domains", [4, 7])
def test_equal_arguments_give_equal_results(num_domains):
    case = drawn_case(1, num_domains, 14)

    assert search(*case, seed=5) == search(*case, seed=5)


@settings(max_examples=FEW)
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


@settings(max_examples=FEW)
@given(seed=st.integers(0, 2**32 - 1), factor=st.floats(1.0, 4.0))
def test_faster_links_never_slow_the_best_plan_down(seed, factor):
    topology, workload = drawn_case(seed, 4, 10)
    ones = np.ones(len(topology.links))
    faster = topology.scaled(factor * ones, ones / factor)

    slow, fast = (search(each, workload, is_exact=True) for each in (topology, faster))
    assert fast.makespan_s <= slow.makespan_s * (1.0 + 1e-12)


@settings(max_examples=10)
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
