"""Figures of a world before any plan: R, and the least time of an iteration."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import unit_domain, unit_workload, world

from des import (
    ARCHITECTURES,
    Link,
    Placement,
    Plan,
    PlaneWorlds,
    Topology,
    build_workload,
    simulate,
)
from des.job.model_presets import STUDIED_MODELS
from des.job.transformer import model_parameters
from scenarios.suites import nominal_iteration_s, transfer_compute_ratio_of


def equal_links(names, bytes_per_s, *, latency_s=0.0):
    """Unit domains, every two joined by links of one bandwidth."""
    ends = ["".join(pair) for pair in permutations(names, 2)]
    return world(names, dict.fromkeys(ends, (bytes_per_s, latency_s)))


def test_ratio_of_a_hand_computed_world():
    """6 bytes at a mean of 1.5 bytes/s over 4.5 FLOPs on 1 and on 3 FLOP/s: 4 s / 3 s."""
    topology = Topology.of(
        [unit_domain("A", flops_per_s=1.0), unit_domain("B", flops_per_s=3.0)],
        [
            Link(source="A", target="B", bandwidth_bytes_per_s=1.0, latency_s=5.0),
            Link(source="B", target="A", bandwidth_bytes_per_s=2.0, latency_s=7.0),
        ],
    )
    job = unit_workload([(4.0, 1.0), (5.0, 1.0)], num_microbatches=3, message_bytes=6.0)

    assert transfer_compute_ratio_of(job, topology) == pytest.approx(4 / 3, rel=1e-12)


def test_ratio_is_h_f_over_b_n_k_for_a_model_of_two_flops_a_parameter_and_token():
    tokens, hidden, parameters = 512, 64, 1.0e6
    job = unit_workload(
        [(2 * tokens * parameters / 4, 1.0)] * 4,
        num_microbatches=7,
        message_bytes=2.0 * tokens * hidden,
    )
    topology = equal_links("ABC", 50.0)

    expected = hidden * 1.0 / (50.0 * parameters / 3)
    assert transfer_compute_ratio_of(job, topology) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("model", STUDIED_MODELS)
def test_ratio_of_the_models_is_below_the_formula_by_their_attention(model):
    topology = PlaneWorlds(num_domains=4).draw(np.random.default_rng(0))
    mean = np.mean([link.bandwidth_bytes_per_s for link in topology.links])
    shape = ARCHITECTURES[model]
    formula = shape.hidden_size * 0.48e15 / (mean * model_parameters(shape) / 4)

    share = transfer_compute_ratio_of(build_workload(model), topology) / formula
    assert 1 / 1.15 < share < 1 / 1.03


@given(
    num_domains=st.integers(2, 6),
    layers_each=st.integers(1, 3),
    num_microbatches=st.integers(1, 8),
    bandwidth=st.floats(0.1, 10.0),
    speeds=st.lists(st.floats(0.5, 2.0), min_size=6, max_size=6),
)
def test_ratio_is_that_of_an_even_split_over_equal_links(
    num_domains, layers_each, num_microbatches, bandwidth, speeds
):
    """Also where domains are not equally fast: both average the forward times."""
    names = "ABCDEF"[:num_domains]
    links = equal_links(names, bandwidth, latency_s=0.5).links
    domains = [
        unit_domain(name, flops_per_s=speed) for name, speed in zip(names, speeds, strict=False)
    ]
    topology = Topology.of(domains, links)
    job = unit_workload(
        [(1.0, 2.0)] * (num_domains * layers_each),
        num_microbatches=num_microbatches,
        message_bytes=3.0,
    )

    plan = Plan(placement=Placement.even(num_domains, job.num_layers))
    measured = simulate(topology, job, plan).transfer_compute_ratio
    assert transfer_compute_ratio_of(job, topology) == pytest.approx(measured, rel=1e-9)


def test_a_world_without_links_has_no_ratio():
    job = unit_workload([(1.0, 1.0)], num_microbatches=1)

    with pytest.raises(ValueError, match="topology: links must hold at least one link"):
        transfer_compute_ratio_of(job, world("A", {}))


@given(
    num_stages=st.integers(1, 6),
    num_microbatches=st.integers(1, 24),
    transfer_s=st.floats(0.0, 12.0),
    latency_s=st.floats(0.0, 1.0),
)
def test_no_even_pipeline_beats_the_nominal_time_and_a_deep_one_is_near(
    num_stages, num_microbatches, transfer_s, latency_s
):
    topology = equal_links("ABCDEF"[: max(num_stages, 2)], 1.0, latency_s=latency_s)
    job = unit_workload(
        [(1.0, 2.0)] * num_stages, num_microbatches=num_microbatches, message_bytes=transfer_s
    )
    # Times are of unit domains; those beyond the stages do not change the time of a stage.
    nominal_s = nominal_iteration_s(job, topology, num_stages)

    placement = Placement.even(num_stages, num_stages)
    makespans_s = {
        schedule: simulate(topology, job, Plan(placement=placement, schedule=schedule)).makespan_s
        for schedule in ("gpipe", "1f1b", "1f1b_4x")
    }
    assert min(makespans_s.values()) >= nominal_s * (1 - 1e-9)
    assert makespans_s["1f1b_4x"] <= 1.5 * nominal_s


@given(num_stages=st.integers(2, 6), num_microbatches=st.integers(1, 24))
def test_nominal_time_is_that_of_1f1b_on_free_links(num_stages, num_microbatches):
    topology = equal_links("ABCDEF"[:num_stages], 1e300)
    job = unit_workload([(1.0, 2.0)] * num_stages, num_microbatches=num_microbatches)

    expected = 3.0 * (num_microbatches + num_stages - 1)
    assert nominal_iteration_s(job, topology, num_stages) == pytest.approx(expected)
