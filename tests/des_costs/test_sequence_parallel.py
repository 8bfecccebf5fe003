"""Activations and times with and without sequence parallelism: the published sums, and limits."""

from dataclasses import replace

import pytest
from shapes import TINY, UNIT_GPU, UNIT_KERNELS, shape_of, tiny_job, with_kernels
from sharing import equal_world

from des import Nodes, Parallelism, Placement, Plan, build_workload, domain_memory, lower, simulate
from des.compiled.simulate import simulate_compiled
from des.costs.layer_products import Spread
from des.costs.layer_times import layer_seconds, moving_s
from des.costs.node_collectives import group_all_reduce_s, group_ring_all_reduce_s
from des.costs.node_groups import tensor_group
from des.costs.stage_times import tensor_parallel_s
from des.job.workload import Layer
from des.plan.corrections import NO_CORRECTIONS
from des.views.memory_timeline import memory_timeline

SPLIT = Parallelism(tensor=8)
WHOLE = Parallelism(tensor=8, sequence_parallel=False)
WORLD = equal_world(1, num_gpus=8)


def shared_by(parallelism: Parallelism, num_layers: int, schedule: str = "1f1b") -> Plan:
    return Plan(
        placement=Placement(domain_of_layer=(0,) * num_layers),
        parallelism=(parallelism,),
        schedule=schedule,
    )


@pytest.mark.parametrize(
    ("recomputation", "whole", "split"),
    [
        ("none", 10 + 24 / 8 + 5 * 96 * 2048 / 12288 / 8, 34 / 8 + 5 * 96 * 2048 / 12288 / 8),
        ("selective", 10 + 24 / 8, 34 / 8),
        ("flash", 10 + 24 / 8, 34 / 8),
        ("full", 2, 2 / 8),
    ],
)
def test_a_gpu_keeps_what_the_paper_says(recomputation, whole, split):
    """Table 2 of Korthikanti et al., in bytes a token and unit of hidden size; tensor of 8."""
    job = build_workload(
        "gpt3_175b",
        num_layers=4,
        num_microbatches=1,
        sequence_length=2048,
        recomputation=recomputation,
    )
    unit = 96 / 4 * 2048 * 12288  # 96 layers in 4 equal parts
    for parallelism, expected in ((SPLIT, split), (WHOLE, whole)):
        (memory,) = domain_memory(WORLD, job, shared_by(parallelism, 4))
        assert memory.activation_bytes / 8 / 4 == pytest.approx(expected * unit)


def test_what_waits_for_the_weight_gradient_is_kept_whole_too():
    """ZB-H1 on two devices; the second holds no more than 1 microbatch of 34 + 10 bytes a unit."""
    job = build_workload("gpt3_175b", num_layers=2, num_microbatches=1, sequence_length=8)
    world, unit = equal_world(1, num_gpus=4), 48 * 8 * 12288
    whole = shared_by(Parallelism(tensor=2, pipeline=2, sequence_parallel=False), 2, "zb_h1")
    result = simulate(world, job, whole)
    timeline = memory_timeline(lower(world, job, whole), result)

    (memory,) = domain_memory(world, job, whole)
    assert memory.activation_bytes == 2 * 44 * unit
    halved = [change.activation_bytes for change in timeline.devices[1].changes[2:3]]
    assert halved == [(32 + 8) / 2 * unit]
    assert simulate_compiled(world, job, whole) == result


@pytest.mark.parametrize("model", ["mixtral_8x7b", "deepseek_v2", "llama3_8b", "qwen3_8b"])
def test_no_more_is_replicated_than_is_kept(model):
    job = build_workload(model, num_microbatches=1, sequence_length=64)
    for layer in job.layers:
        assert 0 < layer.replicated_activation_bytes < layer.activation_bytes
        assert 0 < layer.replicated_input_bytes < layer.weight_input_bytes


def test_norms_are_done_by_every_gpu_or_split():
    """24 bytes a token and unit forward, 48 backward: on one GPU of 4 all of it or a quarter."""
    sizes = {"tensor": 4, "data": 1, "exchange_s": 0.0}
    split = layer_seconds(shape_of(TINY), UNIT_GPU, **sizes)
    whole = layer_seconds(shape_of(TINY), UNIT_GPU, spread=Spread(sequence_parallel=False), **sizes)
    norms_s = moving_s(24.0 * 8 * TINY.hidden_size, UNIT_GPU)

    assert whole.forward - split.forward == pytest.approx(0.75 * norms_s)
    assert whole.input_gradient - split.input_gradient == pytest.approx(1.5 * norms_s)
    assert whole.weight_gradient == split.weight_gradient


def test_selective_recomputation_writes_the_scores_again():
    """Of 2 sequences of 4 tokens and 2 heads: 10 bytes for each of 64 scores."""
    found = layer_seconds(shape_of(TINY, "selective"), UNIT_GPU, tensor=1, data=1, exchange_s=0.0)
    ample = replace(UNIT_KERNELS, memory_efficiency=1.0)
    quick = UNIT_GPU._replace(memory_bandwidth_bytes_per_s=1e30, kernels=ample)
    bare = layer_seconds(shape_of(TINY, "selective"), quick, tensor=1, data=1, exchange_s=0.0)

    assert found.recomputation == pytest.approx(bare.recomputation + 640.0)


def test_sums_take_the_tree_only_without_sequence_parallelism():
    nodes = Nodes(
        gpus_per_node=1,
        nics_per_node=1,
        nic_bandwidth_bytes_per_s=1e9,
        nic_latency_s=1.0,
        tensor_across_nodes=True,
    )
    domain = replace(WORLD.domains[0], nodes=nodes)
    job = tiny_job()
    for shared, sum_s in ((WHOLE, group_all_reduce_s), (SPLIT, group_ring_all_reduce_s)):
        found_s = tensor_parallel_s(job, domain, shared, NO_CORRECTIONS)
        assert found_s == 2 * sum_s(job.message_bytes, tensor_group(domain, shared))
    assert tensor_parallel_s(job, domain, WHOLE, NO_CORRECTIONS) < found_s


@pytest.mark.parametrize("shared", [SPLIT, WHOLE])
def test_compiled_iterations_are_equal(shared):
    world = with_kernels(WORLD, UNIT_KERNELS, 0)
    job, chosen = tiny_job(recomputation="selective"), shared_by(shared, 4)
    assert simulate_compiled(world, job, chosen) == simulate(world, job, chosen)


def test_wrong_values_are_refused():
    with pytest.raises(ValueError, match="sequence_parallel must be True or False, got 'yes'"):
        Parallelism(sequence_parallel="yes")
    assert str(WHOLE).endswith("no sequence parallelism")
    flops = dict.fromkeys(
        ("forward_flops", "input_gradient_flops", "weight_gradient_flops", "num_parameters"), 1.0
    )
    with pytest.raises(ValueError, match="replicated_input_bytes must be at most"):
        Layer(**flops, activation_bytes=1.0, weight_input_bytes=2.0, replicated_input_bytes=3.0)
