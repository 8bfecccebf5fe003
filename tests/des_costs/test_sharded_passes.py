"""Sharded gradients and parameters: closed forms of the passes that gather and scatter them."""

from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from noded import noded_cases
from sharing import FEW, equal_world, gpus, replicas, simulate_alone, with_parameters
from strategies import corrections, unit_workload

from des import NO_CORRECTIONS, Nodes, Parallelism, Placement, Plan, Topology, simulate
from des.compiled.simulate import simulate_compiled
from des.costs.bound_stages import bound_stages
from des.costs.node_collectives import group_all_gather_s
from des.costs.node_groups import data_group
from des.costs.sharded_passes import waiting_s
from des.costs.stage_times import pipeline_of, stage_times_s
from des.schedules import stage_orders, timing_of

NO_LATENCY = (8.0, 0.0)
"""Inner links of 8 bytes/s."""


def test_a_layer_that_computes_longer_hides_its_neighbours_messages():
    assert waiting_s([9.0, 9.0], [2.0, 3.0], [1.0, 4.0]) == 2.0 + 4.0
    assert waiting_s([2.0, 3.0], [2.0, 3.0], [1.0, 4.0]) == 2.0 + (3 - 2) + 0.0 + 4.0
    assert waiting_s([1.0], [2.0], [4.0]) == 6.0


@pytest.mark.parametrize(
    ("sharding", "forward_s", "backward_s", "behind_s"),
    [
        # 16 bytes of weights, or gradients, a layer: half of them come over 8 bytes/s in 1 s
        ("parameters", 1 + 1 + 0.5, 1 + 1 + 1 + 1, 0.0),
        ("gradients", 1.0, 1.0 + 1.0 + 1, 2.0),  # the weights of both layers come at the end
    ],
)
def test_two_layers_of_two_replicas_by_hand(sharding, forward_s, backward_s, behind_s):
    """Layers compute for 0.5 s forward and 1 s backward, as two GPUs share the microbatch.

    Forward: 1 s for the first weights, 0.5 s beside which the next come in 1 s, 0.5 s. Backward: 1
    s, then 1 s that hides the next weights, then 1 s that hides gradients, and 1 s for the last.
    """
    workload = with_parameters(unit_workload([(1, 2)] * 2, num_microbatches=2), 8.0)

    found = simulate_alone(gpus("A", 2, NO_LATENCY), workload, data=2, sharding=sharding)
    lengths_s = [(span.kind, span.end_s - span.start_s) for span in found.spans]
    assert lengths_s == [("F", forward_s), ("B", backward_s)] * 2
    assert found.makespan_s == found.spans[-1].end_s + behind_s


def test_a_schedule_sees_the_whole_backward_pass_hide_gradients_that_its_halves_do_not():
    """B of the last test takes 3 s, but W by itself 0.5 s, 1 s beside a scatter, and 1 s: 2.5 s."""
    workload = with_parameters(unit_workload([(1, 2)] * 2, num_microbatches=2), 8.0)
    chosen = Plan(
        placement=Placement(domain_of_layer=(0, 0)),
        schedule="1f1b",
        parallelism=(Parallelism(data=2, sharding="gradients"),),
    )
    world = Topology.of([gpus("A", 2, NO_LATENCY)], [])
    pipeline = pipeline_of(world, workload, bound_stages(world, chosen), NO_CORRECTIONS, 2)

    assert [pipeline.duration_s(kind, 0) for kind in "FDWB"] == [1.0, 1.0, 2.5, 3.0]
    timing = timing_of(stage_orders("1f1b", 1, 2), pipeline)
    spans = simulate(world, workload, chosen).spans
    assert timing.end_s == (tuple(span.end_s for span in spans),)


def test_halves_of_the_backward_pass_by_hand():
    """D gathers two layers' weights of 1 s: 1 s, 0.5 + 0.5 s, 0.5 s. W scatters as much."""
    workload = with_parameters(unit_workload([(1, 2)] * 2, num_microbatches=1), 8.0)

    found = simulate_alone(
        gpus("A", 2, NO_LATENCY), workload, schedule="zb_h1", data=2, sharding="parameters"
    )
    assert [span.end_s - span.start_s for span in found.spans] == [2.5, 2.5, 2.5]


def test_two_levels_gather_as_rings_over_the_nodes_do():
    """Layers without work wait for 4 rings of all GPUs forward and backward, and 4 of gradients."""
    nodes = Nodes(
        gpus_per_node=2, nics_per_node=1, nic_bandwidth_bytes_per_s=2.0, nic_latency_s=1.0
    )
    domain = replace(gpus("A", 8, (8.0, 0.5)), nodes=nodes)
    workload = with_parameters(unit_workload([(1e-9, 2e-9)] * 4, num_microbatches=1), 8.0)
    ring_s = group_all_gather_s(16.0, data_group(domain, Parallelism(data=8), 0))
    assert ring_s == 4 * 0.5 + 3 * 1.0 + 14 / 2.0

    found = simulate_alone(domain, workload, data=8, sharding="parameters")
    assert [span.end_s - span.start_s for span in found.spans] == [
        pytest.approx(4 * ring_s),
        pytest.approx(8 * ring_s),
    ]


@pytest.mark.parametrize(
    ("sharding", "inside_s"), [("none", 2.0), ("optimiser", 2.0), ("gradients", 1.0)]
)
def test_between_domains_only_parts_are_summed_up(sharding, inside_s):
    """16 bytes: half a ring inside takes 1 s, the ring between two domains 2 x 8 / 16 s."""
    world = equal_world(2, link=(16.0, 0.0), inner=NO_LATENCY, num_gpus=2)
    workload = with_parameters(unit_workload([(2, 4)], num_microbatches=2), 8.0)
    shared = (Parallelism(data=2, sharding=sharding),) * 2

    result = simulate(world, workload, replicas([0], [1], parallelism=shared))
    scattered_s = 1.0 if sharding == "gradients" else 0.0  # at the end of the backward pass
    assert result.makespan_s == pytest.approx(3.0 + scattered_s + inside_s + 1.0)


def test_domains_that_shard_all_send_their_parts_and_keep_them():
    """1 s for weights forward, 1 + 1 s for weights and gradients backward, 1 s between domains."""
    world = equal_world(2, link=(16.0, 0.0), inner=NO_LATENCY, num_gpus=2)
    workload = with_parameters(unit_workload([(2, 4)], num_microbatches=2), 8.0)
    shared = (Parallelism(data=2, sharding="parameters"),) * 2

    result = simulate(world, workload, replicas([0], [1], parallelism=shared))
    assert result.makespan_s == pytest.approx((1 + 1) + (1 + 2 + 1) + 1.0)


@settings(max_examples=examples(FEW), deadline=None)
@given(
    case=noded_cases(),
    found=corrections(),
    sharding=st.sampled_from(["optimiser", "gradients", "parameters"]),
)
def test_a_single_replica_has_nothing_to_shard(case, found, sharding):
    topology, workload, chosen = case
    alone = [replace(one, data=1, sharding="none") for one in chosen.parallelism]
    plain = replace(chosen, parallelism=tuple(alone))
    sharded = replace(
        chosen, parallelism=tuple(replace(one, sharding=sharding) for one in plain.parallelism)
    )

    if chosen.parallelism:
        results = [simulate(topology, workload, one, found) for one in (plain, sharded)]
        assert results[0] == results[1]


@settings(max_examples=examples(FEW), deadline=None)
@given(case=noded_cases(), found=corrections())
def test_passes_wait_no_less_than_for_the_longest_and_no_more_than_for_all(case, found):
    """The closed form lies between perfect overlap and none, in every kind of pass."""
    topology, workload, chosen = case
    sharded = [
        replace(one, parallelism=replace(one.parallelism, tensor=1, sharding="parameters"))
        for one in (bound_stages(topology, chosen) if chosen.parallelism else ())
    ]
    for stage in sharded:
        with_all, bare = (
            stage_times_s(workload, [stage], found, with_exchanges=flag)[0]
            for flag in (True, False)
        )
        assert all(with_all[kind] >= bare[kind] for kind in "FBDW")
        assert with_all["B"] <= (with_all["D"] + with_all["W"]) * (1 + 1e-9)


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(case=noded_cases(), found=corrections(), step=st.integers(0, 1))
def test_the_compiled_twin_is_equal(case, found, step):
    topology, workload, chosen = case

    assert simulate_compiled(topology, workload, chosen, found, step=step) == simulate(
        topology, workload, chosen, found, step=step
    )
