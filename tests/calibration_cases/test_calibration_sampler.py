"""The sampler: cases by position, spread evenly over what matters, apart for fit and check."""

import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import link_state, plan, topologies, world

from calibration.cases.case import PlacementCase
from calibration.cases.case_key import case_digest, describe_case
from calibration.cases.draws import draw_placement, draw_walk
from calibration.cases.sampler import Sampler, sample_cases, sampling_purpose
from calibration.cases.settings import REGIMES, PolicyPlans, Regime, WorkloadFamily
from calibration.cases.worlds import snapshot
from des import (
    STEADY,
    Dynamics,
    MarkovModulated,
    Placement,
    Replay,
    UnreachableError,
    build_workload,
    read_topology,
)
from des.compiled.simulate import simulate_compiled
from des.dynamics.replay import LinkSeries
from des.worlds import EAST_CENTRAL_WEST

SHIPPED = read_topology(EAST_CENTRAL_WEST)
STEADY_SHIPPED = replace(SHIPPED, dynamics=STEADY)
SMALL = WorkloadFamily(
    models=("llama2_7b",),
    num_layers=8,
    num_microbatches=(8, 8),
    microbatch_sizes=(1,),
    sequence_lengths=(2048,),
    schedules=("1f1b",),
)


def counts_of(values):
    """Return how often each value comes, most often first."""
    return sorted(Counter(values).values(), reverse=True)


def is_even(values, num_levels):
    """Whether all levels are there, none more than once more often than another."""
    counts = counts_of(values)
    return len(counts) == num_levels and counts[0] - counts[-1] <= 1


@pytest.fixture(scope="module")
def sixty():
    """Cases of the aware regime: 60 is a multiple of every number of levels but one."""
    return sample_cases(SHIPPED, WorkloadFamily(), 60, seed=3, regime=REGIMES["aware"])


@pytest.mark.parametrize("name", REGIMES)
def test_a_case_depends_on_its_position_alone(name):
    sampler = Sampler(topology=SHIPPED, regime=REGIMES[name], seed=5)
    forwards = [sampler.draw(position) for position in range(6)]
    backwards = [sampler.draw(position) for position in reversed(range(6))]

    assert forwards == backwards[::-1]
    few = sample_cases(SHIPPED, WorkloadFamily(), 3, seed=5, regime=REGIMES[name])
    assert few == [sample.case for sample in forwards[:3]]


def test_other_seeds_give_other_cases():
    digests = [
        case_digest(case)
        for seed in (0, 1, 2**63 - 1)
        for case in sample_cases(SHIPPED, WorkloadFamily(), 10, seed=seed, regime=Regime())
    ]

    assert len(set(digests)) == 30


def test_cases_are_the_same_in_another_process():
    script = (
        "from calibration.cases.case_key import case_digest; "
        "from calibration.cases.sampler import *; "
        "from calibration.cases.settings import *; from des import read_topology; "
        "from des.worlds import EAST_CENTRAL_WEST; "
        "cases = sample_cases(read_topology(EAST_CENTRAL_WEST), WorkloadFamily(), 4, seed=9, "
        "regime=REGIMES['pairwise_gpu']); print(*map(case_digest, cases))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "54321"},
    )

    cases = sample_cases(SHIPPED, WorkloadFamily(), 4, seed=9, regime=REGIMES["pairwise_gpu"])
    assert done.stdout.split() == [case_digest(case) for case in cases]


@settings(max_examples=examples(25))
@given(seeds=st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)), same=st.booleans())
def test_fit_and_check_never_share_a_case(seeds, same):
    """In a steady world with one workload there are few cases, so that draws do repeat."""
    fit_seed, check_seed = (seeds[0], seeds[0]) if same else seeds
    family = replace(SMALL, num_layers=4)
    fit, check = (
        {
            case_digest(case)
            for case in sample_cases(
                STEADY_SHIPPED, family, 40, seed=seed, regime=Regime(), purpose=purpose
            )
        }
        for seed, purpose in ((fit_seed, "fit"), (check_seed, "check"))
    )

    assert len(fit) < 40  # there are repeats
    assert not fit & check


def test_every_case_has_its_purpose(sixty):
    check = sample_cases(
        SHIPPED, WorkloadFamily(), 60, seed=3, regime=REGIMES["aware"], purpose="check"
    )

    assert {sampling_purpose(case) for case in sixty} == {"fit"}
    assert {sampling_purpose(case) for case in check} == {"check"}


@pytest.mark.parametrize(
    ("figure", "num_levels"),
    [
        (lambda case: case.workload.name, 2),
        (lambda case: case.plan.schedule, 4),
        (lambda case: case.topology.num_domains, 3),
        (lambda case: min((case.workload.num_microbatches - 8) // 14, 3), 4),  # 14, 14, 14 and 15
        (lambda case: (case.topology.links[0].bandwidth_bytes_per_s * 8 / 1e9 - 2) // 0.75, 4),
        (lambda case: (case.topology.links[0].latency_s * 1e3 - 30) // 12.5, 4),
    ],
    ids=["model", "schedule", "domains", "microbatches", "bandwidth", "latency"],
)
@pytest.mark.parametrize("num", [12, 35, 60])
def test_levels_come_equally_often(sixty, figure, num_levels, num):
    """Any first cases hold each level as often as any other, or once more."""
    assert is_even([figure(case) for case in sixty[:num]], num_levels)


def test_message_sizes_come_equally_often():
    """Every size of a microbatch and every length of a sequence."""
    family = replace(SMALL, microbatch_sizes=(1, 8, 64), sequence_lengths=(1000, 2000))
    sampled = sample_cases(SHIPPED, family, 31, seed=0, regime=Regime())
    tokens = [case.workload.tokens_per_microbatch // 1000 for case in sampled]

    assert is_even([next(size for size in (64, 8, 1) if each >= size) for each in tokens], 3)
    assert is_even([each in (1, 8, 64) for each in tokens], 2)


def test_numbers_of_used_domains_come_equally_often_in_worlds_of_each_size():
    """54 cases are 18 worlds of each size: 9 rounds of 2 numbers, 4.5 of 4 and 2 of 9."""
    sampled = sample_cases(SHIPPED, WorkloadFamily(), 54, seed=1, regime=REGIMES["aware"])

    for num_domains in (3, 5, 10):
        used = [
            len(case.used_domains) for case in sampled if case.topology.num_domains == num_domains
        ]
        assert len(used) == 18
        assert set(used) == set(range(2, num_domains + 1))
        assert is_even(used, num_domains - 1)


def test_a_quarter_visits_each_domain_once():
    """The others have up to 2, 3 and 4 stages a domain, a third of them each."""
    family = WorkloadFamily(models=("llama2_70b",), schedules=("gpipe", "1f1b", "zb_h1"))
    sampled = sample_cases(SHIPPED, family, 60, seed=2, regime=REGIMES["pairwise"])
    returns = [case.plan.placement.num_borders - len(case.used_domains) + 1 for case in sampled]

    assert min(returns) == 0
    assert sum(count == 0 for count in returns) == 15
    rounds = [len(case.plan.stages) / len(case.used_domains) for case in sampled]
    assert max(rounds) <= 4
    assert is_even([math.ceil(each) for each in rounds if each > 1], 3)


def test_interleaved_placements_go_round_their_domains():
    family = replace(WorkloadFamily(), schedules=("interleaved_1f1b",))
    sampled = sample_cases(SHIPPED, family, 40, seed=2, regime=REGIMES["aware"])
    rounds = []
    for case in sampled:
        walk = [stage.domain for stage in case.plan.stages]
        num_used = len(case.used_domains)
        assert walk == walk[:num_used] * (len(walk) // num_used)
        rounds.append(len(walk) // num_used)
    assert set(rounds) == {2, 3, 4}


def test_splits_range_from_even_to_lopsided(sixty):
    """A quarter of the splits is nearly even; over all, the largest stage varies widely."""
    factors = [describe_case(case)["imbalance_factor"] for case in sixty]

    assert min(factors) < 1.15
    assert max(factors) > 2.0
    assert all(stage.num_layers >= 1 for case in sixty for stage in case.plan.stages)


@given(
    num_stages=st.integers(1, 12),
    more_layers=st.integers(0, 80),
    imbalance=st.floats(0.0, 1.0),
    seed=st.integers(0, 2**32),
)
def test_a_split_gives_every_stage_its_layers(num_stages, more_layers, imbalance, seed):
    """With no imbalance stages differ by a layer at most."""
    rng = np.random.default_rng(seed)
    walk = [stage % 3 for stage in range(num_stages)]
    placement = draw_placement(rng, walk, num_stages + more_layers, imbalance)
    even = draw_placement(rng, walk, num_stages + more_layers, 0.0)

    assert [stage.domain for stage in placement.stages] == walk
    assert len(placement.domain_of_layer) == num_stages + more_layers
    sizes = [stage.num_layers for stage in even.stages]
    assert max(sizes) - min(sizes) <= 1


@given(num_used=st.integers(2, 10), more=st.integers(0, 30), seed=st.integers(0, 2**32))
def test_a_walk_visits_all_its_domains(num_used, more, seed):
    rng = np.random.default_rng(seed)
    domains = rng.permutation(20)[:num_used].tolist()
    walk = draw_walk(rng, domains, num_used + more)

    assert len(walk) == num_used + more
    assert set(walk) == set(domains)
    assert all(one != other for one, other in pairwise(walk))


@pytest.mark.parametrize("name", REGIMES)
def test_worlds_are_steady_and_of_their_regime(name):
    """Equal links, or links within their ranges times what an epoch makes of them."""
    regime = REGIMES[name]
    for case in sample_cases(SHIPPED, WorkloadFamily(), 9, seed=4, regime=regime):
        topology = case.topology
        gbit_per_s = [link.bandwidth_bytes_per_s * 8 / 1e9 for link in topology.links]
        ms = [link.latency_s * 1e3 for link in topology.links]
        assert len(topology.links) == topology.num_domains * (topology.num_domains - 1)
        assert topology.movement is None
        assert topology.dynamics == STEADY
        assert {domain.num_gpus for domain in topology.domains} == {8}
        assert {domain.intra_bandwidth_bytes_per_s for domain in topology.domains} == {50e9}
        if regime.worlds == "equal":
            assert len(set(gbit_per_s)) == len(set(ms)) == 1
            assert 2.0 <= gbit_per_s[0] <= 5.0
            assert 30.0 <= ms[0] <= 80.0
        else:
            assert len(set(gbit_per_s)) == len(set(ms)) == len(topology.links)
            assert 2.0 * 0.7 <= min(gbit_per_s) <= max(gbit_per_s) <= 5.0 * 1.3
            assert 30.0 * 0.8 <= min(ms) <= max(ms) <= 80.0 * 1.2


@pytest.mark.parametrize("name", REGIMES)
def test_every_case_can_be_simulated(name):
    """Under each of four schedules, at both granularities."""
    for case in sample_cases(SHIPPED, WorkloadFamily(), 8, seed=6, regime=REGIMES[name]):
        result = simulate_compiled(case.topology, case.workload, case.plan)

        assert 0.0 < result.makespan_s < np.inf


@settings(max_examples=examples(30))
@given(topology=topologies(min_domains=2, max_domains=4), seed=st.integers(0, 2**63 - 1))
def test_any_world_gives_cases(topology, seed):
    """Uneven domains, missing links and any law: given as it is, or as a model for others."""
    for worlds, granularity in product(("given", "equal", "drawn"), ("domain", "gpu")):
        regime = Regime(worlds=worlds, granularity=granularity)
        (case,) = sample_cases(topology, SMALL, 1, seed=seed, regime=regime)

        assert case.topology.num_domains == topology.num_domains
        assert case.granularity == granularity
        assert simulate_compiled(case.topology, case.workload, case.plan).makespan_s > 0.0


def test_all_gpus_work_at_the_granularity_of_gpus():
    sampled = sample_cases(SHIPPED, WorkloadFamily(), 16, seed=0, regime=Regime(granularity="gpu"))
    shapes = [(each.tensor, each.data) for case in sampled for each in case.plan.parallelism]

    assert counts_of(shapes) == [12] * 4  # four cases of three domains each
    assert set(shapes) == {(1, 8), (2, 4), (4, 2), (8, 1)}


def test_a_snapshot_has_the_figures_of_its_epoch():
    """Factors of a law that is drawn once an epoch."""
    steady = snapshot(SHIPPED, 7)
    bandwidth_factors, latency_factors = SHIPPED.dynamics.factors(len(SHIPPED.links), 7, 0)

    assert steady.movement is None
    assert steady.dynamics == STEADY
    for link, base, bandwidth_factor, latency_factor in zip(
        steady.links, SHIPPED.links, bandwidth_factors, latency_factors, strict=True
    ):
        assert link.bandwidth_bytes_per_s == base.bandwidth_bytes_per_s * bandwidth_factor
        assert link.latency_s == base.latency_s * latency_factor


def test_a_snapshot_of_links_that_move_in_time_has_those_of_its_moment():
    """Half the bandwidth after 10 s, twice the latency after 20 s."""
    series = LinkSeries(
        source="A",
        target="B",
        times_s=(0.0, 10.0, 20.0),
        bandwidths_bytes_per_s=(8.0, 4.0, 4.0),
        latencies_s=(1.0, 1.0, 2.0),
    )
    law = Replay(name="trace", series=(series,), holds_last=True)
    topology = world("AB", {"AB": (8.0, 1.0)}, dynamics=law)
    found = [snapshot(topology, 0, start_s).links[0] for start_s in (5.0, 15.0, 25.0)]

    assert [link.bandwidth_bytes_per_s for link in found] == [8.0, 4.0, 4.0]
    assert [link.latency_s for link in found] == [1.0, 1.0, 2.0]


def test_moments_at_which_a_link_is_down_are_passed_over():
    """Each of six links is down half of the time, so at one moment of 64 none is."""
    states = (link_state("up", 10.0, down=1.0), link_state("down", 10.0, factor=0.0, up=1.0))
    topology = replace(SHIPPED, dynamics=MarkovModulated(states=states, starts_in="up"))
    times_s = np.linspace(100.0, 200.0, 300)
    found = [snapshot(topology, 0, start_s) for start_s in times_s]

    assert 0 < sum(each is not None for each in found) < 100
    sampled = sample_cases(topology, SMALL, 5, seed=0, regime=Regime())
    assert all(link.bandwidth_bytes_per_s > 0 for case in sampled for link in case.topology.links)


def test_routes_stay_those_of_the_world():
    """An epoch may make a detour quicker; packets do not learn of it."""
    topology = replace(SHIPPED, dynamics=Dynamics(bandwidth_fluctuation=0.0, latency_jitter=0.9))

    base = tuple(link.latency_s for link in SHIPPED.links)
    assert snapshot(topology, 1).routing_latencies_s == base


WORKLOAD = build_workload("llama2_7b", num_layers=6, num_microbatches=8)


def policy_of(*placements, weights=None):
    """What a policy does that chooses these placements."""
    return PolicyPlans(
        workload=WORKLOAD,
        plans=tuple(plan(*each, schedule="zb_h1") for each in placements),
        weights=weights or (1.0,) * len(placements),
    )


@pytest.mark.parametrize(("fraction", "expected"), [(0.25, 8), (0.5, 16), (1.0, 32)])
def test_a_fraction_of_the_cases_is_the_policys(fraction, expected):
    chosen = (0, 0, 1, 1, 2, 2)
    sampler = Sampler(
        topology=SHIPPED,
        family=SMALL,
        policy=policy_of(chosen),
        policy_fraction=fraction,
    )
    samples = [sampler.draw(position) for position in range(32)]
    own = [sample.case for sample in samples if sample.source == "policy"]

    assert len(own) == expected
    for case in own:
        assert case.plan.placement == Placement(domain_of_layer=chosen)
        assert case.plan.schedule == "zb_h1"
        assert case.workload == WORKLOAD
    assert len({case_digest(case) for case in own}) == expected  # on links of their own


def test_plans_come_by_their_weights():
    """Of 32 cases, three quarters are of the plan with three times the weight."""
    often, seldom = (0, 0, 1, 1, 2, 2), (2, 2, 2, 0, 0, 0)
    sampled = sample_cases(
        SHIPPED,
        SMALL,
        32,
        seed=0,
        regime=Regime(),
        policy=policy_of(seldom, often, weights=(5.0, 15.0)),
        policy_fraction=1.0,
    )

    placements = Counter(case.plan.placement.domain_of_layer for case in sampled)
    assert placements == {often: 24, seldom: 8}


def test_strata_are_even_beside_a_policy():
    sampler = Sampler(
        topology=SHIPPED,
        regime=REGIMES["aware"],
        policy=policy_of((0, 0, 1, 1, 2, 2)),
        policy_fraction=0.3,
    )
    samples = [sampler.draw(position) for position in range(40)]
    stratified = [sample.case for sample in samples if sample.source == "strata"]

    assert len(stratified) == 28
    assert is_even([case.plan.schedule for case in stratified], 4)
    assert is_even([case.topology.num_domains for case in stratified], 3)


def test_a_policy_that_does_one_thing_in_a_steady_world_has_it_for_one_purpose():
    """For the other purpose its places are filled from the strata, and say so."""
    policy = policy_of((0, 0, 1, 1, 2, 2))
    topology = snapshot(STEADY_SHIPPED, 0)
    only = PlacementCase(topology=topology, workload=WORKLOAD, plan=policy.plans[0])
    for purpose in ("fit", "check"):
        sampler = Sampler(
            topology=topology, family=SMALL, purpose=purpose, policy=policy, policy_fraction=1.0
        )
        sample = sampler.draw(0)
        assert sampling_purpose(sample.case) == purpose
        if purpose == sampling_purpose(only):
            assert sample.source == "policy"
            assert case_digest(sample.case) == case_digest(only)
        else:
            assert sample.source == "strata"


def test_too_few_different_cases_for_a_purpose_are_an_error():
    """Two layers on two domains: there are two cases, which may both be of one purpose."""
    topology = world("AB", {"AB": (1e9, 0.03), "BA": (1e9, 0.03)})
    outcomes = Counter()
    for sequence_length in range(128, 128 + 6):
        family = replace(SMALL, num_layers=2, sequence_lengths=(sequence_length,))
        there_are = set()
        for walk in ((0, 1), (1, 0)):
            workload = build_workload(
                "llama2_7b", num_layers=2, num_microbatches=8, sequence_length=sequence_length
            )
            case = PlacementCase(
                topology=snapshot(topology, 0), workload=workload, plan=plan(*walk)
            )
            there_are.add(sampling_purpose(case))
        for purpose in ("fit", "check"):
            sampler = Sampler(topology=topology, family=family, purpose=purpose)
            outcomes[purpose in there_are] += 1
            if purpose in there_are:
                assert sampling_purpose(sampler.draw(0).case) == purpose
            else:
                with pytest.raises(ValueError, match=f"must have a case for {purpose} at position"):
                    sampler.draw(0)
    assert set(outcomes) == {True, False}


def test_a_world_with_unreachable_domains_is_refused():
    topology = world("ABC", {"AB": (1e9, 0.03), "BA": (1e9, 0.03)})

    with pytest.raises(UnreachableError, match="A -> C"):
        Sampler(topology=topology)
    assert Sampler(topology=topology, regime=Regime(worlds="equal")).draw(0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seed": -1}, r"sampler: seed must be a whole number within \[0, 2\*\*63\), got -1"),
        ({"purpose": "test"}, "purpose must be fit or check, got 'test'"),
        ({"policy_fraction": 0.0}, "policy_fraction must be above 0 and at most 1, got 0.0"),
        ({"topology": world("A", {})}, "topology must have at least 2 domains, got 1"),
        ({"policy": policy_of((0, 3, 3, 3, 3, 3))}, "layer 1 must be on one of the domains"),
        ({"topology": SHIPPED.epoch_of(0).later(0.0)}, None),
    ],
)
def test_bad_samplers_are_refused(fields, message):
    if message is None:  # an epoch that stands still is a world like any other
        assert Sampler(**fields).draw(0)
        return
    with pytest.raises(ValueError, match=message):
        Sampler(**{"topology": SHIPPED} | fields)


def test_a_world_that_moves_already_is_refused():
    law = Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=5.0)
    moving = replace(SHIPPED, dynamics=law).epoch_of(0)

    with pytest.raises(ValueError, match="topology must not be moving already"):
        Sampler(topology=moving).draw(0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"models": ()}, "models must hold at least one, got none"),
        ({"models": ("gpt5",)}, "model: must be one of"),
        ({"schedules": ("2f2b",)}, "schedule: must be one of"),
        ({"schedules": ("exact",)}, "schedule must be quick to make"),
        ({"num_microbatches": (64, 8)}, r"must be the least and the most, got \(64, 8\)"),
        ({"num_microbatches": (0, 8)}, "num_microbatches must be a whole number from 1"),
        ({"microbatch_sizes": (0,)}, "microbatch_sizes must be a whole number from 1"),
        ({"sequence_lengths": ()}, "sequence_lengths must hold at least one"),
        ({"recomputation": "some"}, "recomputation must be one of"),
        ({"num_layers": 3}, "num_layers must be at least 4, so that two domains have stages"),
    ],
)
def test_bad_families_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        WorkloadFamily(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"worlds": "other"}, "worlds must be given, equal or drawn; got 'other'"),
        ({"num_domains": (3,)}, "num_domains must be left out where the worlds are given"),
        ({"worlds": "equal", "num_domains": (1,)}, "num_domains must be at least 2, got 1"),
        ({"granularity": "rack"}, "granularity must be one of domain, gpu; got 'rack'"),
        ({"snapshot_span_s": -1.0}, "snapshot_span_s must be finite and not negative"),
    ],
)
def test_bad_regimes_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Regime(**fields)


@pytest.mark.parametrize("weights", [(), (1.0,), (1.0, 0.0), (1.0, float("nan"))])
def test_bad_weights_are_refused(weights):
    with pytest.raises(ValueError, match="policy plans: weights must"):
        PolicyPlans(workload=WORKLOAD, plans=(plan(0, 1), plan(1, 0)), weights=weights)
