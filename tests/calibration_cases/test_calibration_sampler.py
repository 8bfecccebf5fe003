"""The sampler: cases by position, apart for fit and check, from worlds that it can use."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import link_state
from processes import words_printed
from sampled_cases import SHIPPED, SMALL, STEADY_SHIPPED, counts_of, policy_of
from strategies import plan, topologies, world

from calibration.cases.case import PlacementCase
from calibration.cases.case_key import case_digest
from calibration.cases.sampler import Sampler, sample_cases, sampling_purpose
from calibration.cases.settings import REGIMES, Regime, WorkloadFamily
from calibration.cases.worlds import snapshot
from des import STEADY, MarkovModulated, Replay, UniformLaw, UnreachableError, build_workload
from des.compiled.simulate import simulate_compiled
from des.dynamics.replay import LinkSeries


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
    cases = sample_cases(SHIPPED, WorkloadFamily(), 4, seed=9, regime=REGIMES["pairwise_gpu"])
    assert words_printed(script) == [case_digest(case) for case in cases]


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
    topology = replace(SHIPPED, dynamics=UniformLaw(bandwidth_fluctuation=0.0, latency_jitter=0.9))

    base = tuple(link.latency_s for link in SHIPPED.links)
    assert snapshot(topology, 1).routing_latencies_s == base


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
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=5.0)
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
