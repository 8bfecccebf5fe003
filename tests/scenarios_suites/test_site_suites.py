"""Suites of real sites: figures in range, ratios spread evenly, jobs that can be regrouped."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.decision.training_job import TrainingJob, regrouped
from des import Placement, Plan, build_workload, check_memory, simulate
from des.compiled.simulate import simulate_compiled
from des.devices.gpu_kinds import GPU_KINDS
from des.worlds.geography import round_trip_s
from scenarios.suites import SITE_NAMES, suite
from scenarios.suites.sites import SITE_GPU_KINDS, SITE_GPUS, SITE_MODELS, least_site_ratio

SIZES = (2, 3, 4, 6, 8, 10, 16, 24, 32, 64)
SMALL = (2, 3, 4, 6, 8)


@pytest.mark.parametrize("name", SITE_NAMES)
@settings(max_examples=4)
@given(seed=st.integers(0, 2**63 - 1), index=st.integers(0, 10_000))
def test_a_world_of_sites_has_figures_in_range(name, seed, index):
    found = suite(name).with_domains(*SMALL).world(index, seed)
    kinds = [GPU_KINDS[kind] for kind in SITE_GPU_KINDS]

    assert found.num_domains in SMALL
    assert found.ratio == pytest.approx(found.target_ratio, rel=1e-9)
    assert 0.3 <= found.target_ratio <= 300
    assert 0.098e6 <= found.workload.tokens_per_iteration <= 16.8e6
    assert found.workload.num_microbatches <= 512
    assert found.workload.name in SITE_MODELS
    for link in found.topology.links:
        assert 0.1e9 / 8 <= link.bandwidth_bytes_per_s <= 400e9 / 8
        assert 0.00285 <= link.latency_s <= round_trip_s(20_020.0) / 2
    for domain in found.topology.domains:
        assert domain.num_gpus in SITE_GPUS
        assert domain.source_of_layer_times == "shapes"
        assert (domain.gpu_peak_flops_per_s, domain.gpu_memory_bytes) in [
            (kind.peak_flops_per_s, kind.memory_bytes) for kind in kinds
        ]


def test_a_block_has_every_number_of_sites_in_every_decade_of_the_ratio():
    worlds = suite("sites_static").worlds(30, seed=1)

    decades = [int(np.floor(np.log10(one.ratio / 0.3))) for one in worlds]
    assert Counter(
        (one.num_domains, decade) for one, decade in zip(worlds, decades, strict=True)
    ) == {(count, decade): 1 for count in SIZES for decade in range(3)}
    equal = [len({d.num_gpus for d in one.topology.domains}) == 1 for one in worlds]
    assert 5 <= sum(equal) <= 25
    assert len({one.workload.name for one in worlds}) >= 6


def test_no_ratio_is_drawn_that_64_sites_cannot_have():
    """Llama 3 405B on 8 A100: 16384 x 2 bytes a token over a 64th of its FLOPs at 0.8 x 312 T.

    The quickest of 2016 links at most 50 GB/s is exp(1.5) over the mean, which is exp(0.125).
    """
    job = build_workload("llama3_405b", num_microbatches=24, sequence_length=4096)
    flops_per_token = sum(job.forward_flops) / 4096
    mean_bytes_per_s = 50e9 / math.exp(1.5 - 0.125)
    least = 16384 * 2 * 64 * 8 * 0.8 * 312e12 / flops_per_token / mean_bytes_per_s

    assert least_site_ratio(64) == pytest.approx(least, rel=1e-12)
    assert least_site_ratio(32) == pytest.approx(least / 2, rel=1e-12)
    drawn = suite("sites_static").world(57)  # 0.305 comes first
    assert drawn.num_domains == 64
    assert least < drawn.ratio < 3.0


def test_microbatches_of_all_sizes_divide_the_tokens_of_a_step():
    for world in suite("sites_static").with_domains(2, 3).worlds(4):
        groups = regrouped(world.workload, (1, 2, 4, 8))
        assert {int(each.shape.batch_size) for each in groups} == {1, 2, 4, 8}
        assert {each.tokens_per_iteration for each in groups} == {
            world.workload.tokens_per_iteration
        }
        job = TrainingJob.of(world.workload, microbatch_size=int(world.workload.shape.batch_size))
        assert job.tokens_per_step == world.workload.tokens_per_iteration


def test_a_plan_fits_every_world_and_the_engine_and_its_twin_agree_on_it():
    """The largest sites in even parts; with layer times by shape."""
    for world in suite("sites_static").with_domains(2, 3).worlds(3, seed=2):
        found = []
        by_memory = sorted(range(world.num_domains), key=lambda one: -_memory(world, one))
        for num_stages in range(1, world.num_domains + 1):
            even = Placement.even(num_stages, world.workload.num_layers).domain_of_layer
            placement = Placement(domain_of_layer=tuple(by_memory[stage] for stage in even))
            plan = Plan(placement=placement, schedule=world.schedule)
            try:
                check_memory(world.topology, world.workload, plan)
            except ValueError:
                continue
            found.append(plan)
        assert found
        few = replace(world.workload, num_microbatches=4)
        assert (
            simulate(world.topology, few, found[0]).makespan_s
            == simulate_compiled(world.topology, few, found[0]).makespan_s
        )


def _memory(world, number):
    return world.topology.domains[number].memory_bytes
