"""Cases of the sampler are spread evenly over what matters."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampled_cases import SHIPPED, SMALL, counts_of, policy_of

from calibration.cases.case_key import describe_case
from calibration.cases.draws import draw_placement, draw_walk
from calibration.cases.sampler import Sampler, sample_cases, sampling_purpose
from calibration.cases.settings import REGIMES, Regime, WorkloadFamily


def is_even(values, num_levels):
    """Whether all levels are there, none more than once more often than another."""
    counts = counts_of(values)
    return len(counts) == num_levels and counts[0] - counts[-1] <= 1


@pytest.fixture(scope="module")
def sixty():
    """Cases of the aware regime: 60 is a multiple of every number of levels but one."""
    return sample_cases(SHIPPED, WorkloadFamily(), 60, seed=3, regime=REGIMES["aware"])


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
