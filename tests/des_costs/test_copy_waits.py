"""Context and expert parallelism: closed forms of passes, sums and memory, by hand."""

from dataclasses import replace

import pytest
from sharing import gpus
from sparse_jobs import EXPERTS, small, small_job, whole_plan

from des import Nodes, Parallelism, Topology, domain_memory, simulate
from des.costs.bound_stages import bound_stages
from des.costs.copy_collectives import held_parameters
from des.costs.copy_waits import RingWaits, ring_waits_s
from des.costs.inner_sums import half_sum_s
from des.costs.node_collectives import RankGroup
from des.costs.node_groups import block_group, expert_data_group, expert_group
from des.costs.stage_times import stage_times_s
from des.costs.update_times import update_s
from des.job.layer_sizes import expert_parameters, own_layer_sizes
from des.plan.buckets import buckets_of
from des.plan.corrections import NO_CORRECTIONS
from des.world.kernel_figures import FITTED_KERNELS

TOKENS = 2 * 16
DENSE, SPARSE = small(), small(experts=EXPERTS)


def passes(domain, workload, **parallelism):
    plan = whole_plan(workload, **parallelism)
    topology = Topology.of([domain], [])
    (found,) = stage_times_s(workload, bound_stages(topology, plan), NO_CORRECTIONS)
    return found


@pytest.mark.parametrize(
    ("shift_s", "waits"),
    [
        # work on a block: 2 s forward, 4 s backward; three blocks
        (1.0, RingWaits(0.0, 1.0)),  # only the last gradients travel alone
        (3.0, RingWaits(2 * 1.0, 2.0 + 3.0)),  # 3 + 3 s against 4 s in the second step
        (5.0, RingWaits(2 * 3.0, 1.0 + 6.0 + 1.0 + 5.0)),
    ],
)
def test_a_ring_of_three_by_hand(shift_s, waits):
    assert ring_waits_s(3, shift_s, 2.0) == waits


def test_free_wires_make_context_what_data_is():
    """Work, activations and messages of a GPU are those of its part of the tokens."""
    domain, workload = gpus("A", 4), small_job(DENSE)

    assert passes(domain, workload, context=4) == passes(domain, workload, data=4)
    topology = Topology.of([domain], [])
    memories = [
        domain_memory(topology, workload, whole_plan(workload, **one))
        for one in ({"context": 4}, {"data": 4}, {"data": 2, "context": 2})
    ]
    assert memories[0] == memories[1] == memories[2]


def test_keys_and_values_go_round_by_hand():
    """Two layers; a block of 16 tokens is 2 x 2 heads x 2 x 2 bytes each, 256 bytes at 1 byte/s.

    Attention on a block: of 2 x 32 x 16 x 4 heads x 4 FLOPs a quarter, as 2 GPUs of 1 FLOP/s work
    on 2 blocks each. Forward: 4096 s hide 256 s. Backward: all but the last gradients are hidden.
    """
    workload = small_job(DENSE)
    sizes = own_layer_sizes(workload.shape, 0)
    assert sizes.attention_flops == 2 * TOKENS * 16 * 4 * (2 + 2)
    assert sizes.key_value_bytes == 2 * TOKENS * 2 * (2 + 2)
    quick, slow = gpus("A", 2, (1.0, 0.0)), gpus("A", 2, (0.01, 0.0))
    alone = passes(gpus("A", 2), workload, data=2)

    hidden = passes(quick, workload, context=2)
    assert hidden["F"] == alone["F"]
    assert hidden["B"] == pytest.approx(alone["B"] + 2 * 256)
    work_s, shift_s = sizes.attention_flops / 4, 256 / 0.01
    waited = passes(slow, workload, context=2)
    assert waited["F"] == pytest.approx(alone["F"] + 2 * (shift_s - work_s))
    assert waited["D"] == pytest.approx(alone["D"] + 2 * (2 * (shift_s - 2 * work_s) + shift_s))
    assert waited["W"] == alone["W"]


def test_recomputed_attention_goes_round_again():
    slow = gpus("A", 2, (0.01, 0.0))
    more = {}
    for name in ("flash", "selective", "full"):
        workload = small_job(DENSE, recomputation=name)
        plain, shared = (
            passes(domain, workload, **one)
            for domain, one in ((gpus("A", 2), {"data": 2}), (slow, {"context": 2}))
        )
        more[name] = {kind: shared[kind] - plain[kind] for kind in "FD"}
    for name in ("selective", "full"):
        assert more[name]["D"] == pytest.approx(more["flash"]["D"] + more["flash"]["F"])


def test_tokens_go_to_experts_and_back_by_hand():
    """The second layer: 2 x 32 tokens of 16 bytes over 2 GPUs: each sends 512, of which half leave.

    An all-to-all takes 0.5 + 256 / 2 s; two of them a pass, four backward if all is made again.
    """
    workload = small_job(SPARSE)
    domain = gpus("A", 2, (2.0, 0.5))
    alone, shared = passes(domain, workload, data=2), passes(domain, workload, data=2, expert=2)

    one_s = 0.5 + 256 / 2.0
    for kind, count in (("F", 2), ("B", 2), ("D", 2), ("W", 0)):
        assert shared[kind] == pytest.approx(alone[kind] + count * one_s)
    again = small_job(SPARSE, recomputation="full")
    alone, shared = passes(domain, again, data=2), passes(domain, again, data=2, expert=2)
    assert shared["B"] == pytest.approx(alone["B"] + 4 * one_s)


def test_whole_experts_get_tokens_that_the_tensor_group_divides():
    """4 GPUs send 256 bytes each, of which 3 / 4 leave; cut experts 512, of which a half leaves."""
    workload = small_job(SPARSE)
    domain = gpus("A", 4, (2.0, 0.5))
    alone, cut, whole = (
        passes(domain, workload, tensor=2, data=2, **one)
        for one in ({}, {"expert": 2}, {"expert": 4, "whole_experts": True})
    )

    for kind, count in (("F", 2), ("B", 2), ("D", 2), ("W", 0)):
        assert cut[kind] == pytest.approx(alone[kind] + count * (0.5 + 512 / 2 / 2.0))
        assert whole[kind] == pytest.approx(alone[kind] + count * (0.5 + 3 * 256 / 4 / 2.0))


def test_the_fullest_gpu_gets_more_tokens_and_work():
    """1.5 times the mean: half again of 6 x 8 x 16 x 2 FLOPs a token over 2 GPUs, and of bytes."""
    workload = small_job(SPARSE)
    domain = gpus("A", 2, (2.0, 0.5))
    even, skewed = (
        passes(domain, workload, data=2, expert=2, expert_skew=load) for load in (1.0, 1.5)
    )

    work_s = 0.5 * TOKENS * 6 * 8 * 16 * 2 / 2
    for kind, count in (("F", 2), ("D", 2), ("W", 0)):
        assert skewed[kind] == pytest.approx(even[kind] + count * 0.5 * 256 / 2.0 + work_s)


def test_experts_are_held_once_by_those_that_share_them():
    """16 bytes a parameter: four copies of what is common, two of the experts; shards hold one."""
    workload = small_job(SPARSE)
    topology = Topology.of([replace(gpus("A", 4), gpu_memory_bytes=1e9)], [])
    routed = 8 * 3 * 8 * 16
    assert expert_parameters(workload.shape) == (0.0, routed)
    common = sum(workload.num_parameters) - routed

    def state(**parallelism):
        (found,) = domain_memory(topology, workload, whole_plan(workload, **parallelism))
        return found.model_state_bytes

    assert state(data=4, expert=2) == 16 * (4 * common + 2 * routed)
    whole = {"tensor": 2, "data": 2, "expert": 4, "whole_experts": True}
    assert state(**whole) == state(tensor=2, data=2, expert=2) == 16 * (2 * common + routed)
    assert state(**whole | {"expert": 2}) == 16 * (2 * common + 2 * routed)
    assert state(data=2, context=2, expert=4) == 16 * (4 * common + routed)
    sharded = state(data=4, expert=2, sharding="optimiser")
    assert sharded == (4 * 4 + 12) * common + (2 * 4 + 12) * routed


def test_copies_of_experts_sum_up_among_themselves():
    """2 bytes a gradient: 3 / 4 of what is common over 4 GPUs, then 1 / 2 of a half of experts."""
    workload = small_job(SPARSE)
    plan = whole_plan(workload, data=4, expert=2)
    topology = Topology.of([gpus("A", 4, (2.0, 0.0))], [])
    (bucket,) = buckets_of(workload, plan, 0)
    held = held_parameters(workload, 0, 2, plan.parallelism[0])

    half_s = half_sum_s(workload, bound_stages(topology, plan)[0], bucket, NO_CORRECTIONS)
    assert half_s == pytest.approx(held.common * 3 / 4 + held.experts / 2 * 1 / 2)
    last_s = max(span.end_s for span in simulate(topology, workload, plan).spans)
    assert simulate(topology, workload, plan).makespan_s == pytest.approx(last_s + 2 * half_s)


ON_NODES = replace(
    gpus("A", 32, (7.0, 0.5)),
    nodes=Nodes(gpus_per_node=8, nics_per_node=4, nic_bandwidth_bytes_per_s=3.0, nic_latency_s=1.0),
)
"""32 GPUs, nodes of 8 with 4 cards."""


def assert_same_experts_lie_apart(shared):
    """The same experts lie 16 GPUs apart: one on each of 2 nodes."""
    same = expert_data_group(ON_NODES, shared, 0)
    assert (same.num_ranks, same.num_nodes, same.most_per_node) == (2, 2, 1)
    assert same.outer_bandwidth_bytes_per_s == 4 * 3.0 / 8


def test_groups_of_copies_on_nodes():
    """2 tensor x 2 context x 8 data, experts over 8 copies."""
    shared = Parallelism(tensor=2, data=8, context=2, expert=8)
    ring = block_group(ON_NODES, shared, 2, num_senders=1)
    assert ring.one_level == (7.0, 0.5)
    # 8 copies are 16 GPUs, so 4 on each of 2 nodes; both groups of a node have 2 cards
    assert block_group(ON_NODES, shared, 8) == RankGroup(
        num_ranks=8,
        num_nodes=2,
        most_per_node=4,
        inner_bandwidth_bytes_per_s=7.0,
        inner_latency_s=0.5,
        outer_bandwidth_bytes_per_s=6.0,
        outer_latency_s=1.0,
    )
    assert_same_experts_lie_apart(shared)


def test_whole_experts_fill_nodes_in_a_row():
    """16 experts' GPUs are 2 nodes, and 2 such groups."""
    shared = Parallelism(tensor=2, data=16, expert=16, whole_experts=True)
    found = expert_group(ON_NODES, shared)
    assert (found.num_ranks, found.num_nodes, found.most_per_node) == (16, 2, 8)
    assert found.outer_bandwidth_bytes_per_s == 4 * 3.0
    assert_same_experts_lie_apart(shared)
    assert expert_group(ON_NODES, replace(shared, expert=8)).one_level == (7.0, 0.5)


@pytest.mark.parametrize("sharding", ["none", "optimiser", "parameters"])
def test_equal_parts_of_experts_make_equal_sums_and_updates(sharding):
    """On one level 4 GPUs hold a quarter each, cut or whole: gradients, buffers and updates."""
    topology = Topology.of([replace(gpus("A", 8, (2.0, 0.0)), kernels=FITTED_KERNELS)], [])
    workload = small_job(SPARSE)
    ends = []
    for one in ({"expert": 2}, {"expert": 4, "whole_experts": True}):
        plan = whole_plan(workload, tensor=2, data=4, sharding=sharding, **one)
        stages = bound_stages(topology, plan)
        sums_s = [
            half_sum_s(workload, stages[0], bucket, NO_CORRECTIONS)
            for bucket in buckets_of(workload, plan, 0)
        ]
        memory = domain_memory(topology, workload, plan)
        ends.append((sums_s, update_s(workload, stages, NO_CORRECTIONS), memory))
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("parallelism", "message"),
    [
        (
            {"tensor": 2, "data": 4, "expert": 4, "whole_experts": True},
            "expert must divide the 6 GPUs of a node or be a multiple of them, got 4",
        ),
        ({"data": 4, "context": 3}, "context must divide the 16 tokens of a sequence, got 3"),
        ({"data": 3, "expert": 3}, "expert must divide the 8 experts of a layer of small, got 3"),
        (
            {"tensor": 2, "data": 3, "context": 2, "expert": 2, "expert_skew": 1.5},
            "tensor x context must divide the 6 GPUs of a node or be a multiple of them, got 4",
        ),
    ],
)
def test_what_a_job_or_its_nodes_do_not_allow_is_refused(parallelism, message):
    nodes = Nodes(
        gpus_per_node=6, nics_per_node=1, nic_bandwidth_bytes_per_s=1.0, nic_latency_s=0.0
    )
    topology = Topology.of([replace(gpus("A", 12), nodes=nodes)], [])
    workload = small_job(SPARSE)
    plan = whole_plan(workload, **parallelism)

    with pytest.raises(ValueError, match=f"^plan: parallelism of domain A: {message}$"):
        simulate(topology, workload, plan)


@pytest.mark.parametrize("field", ["context", "expert"])
def test_jobs_without_such_sizes_are_refused(field):
    dense = small_job(DENSE)
    workload = replace(dense, shape=None) if field == "context" else dense
    plan = whole_plan(workload, data=2, **{field: 2})

    with pytest.raises(ValueError, match=f"{field} must be 1 for workload small, .*; got 2"):
        simulate(Topology.of([gpus("A", 4)], []), workload, plan)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"data": 4, "expert": 3}, "expert must divide data x context, 4; got 3"),
        ({"data": 4, "expert": 2, "expert_skew": 2.5}, "expert_skew must be 1 to expert, 2"),
        (
            {"tensor": 2, "data": 4, "expert": 3, "whole_experts": True},
            "expert must divide tensor x data x context, 8; got 3",
        ),
        ({"whole_experts": 1}, "whole_experts must be True or False, got 1"),
        ({"data": 4, "expert": 2, "whole_experts": True}, "needs tensor and expert above 1"),
        ({"tensor": 2, "whole_experts": True}, "needs tensor and expert above 1"),
        (
            {"tensor": 2, "expert": 2, "whole_experts": True, "sequence_parallel": False},
            "sequence parallelism; got tensor 2 .*, whole experts over 2, no sequence",
        ),
        ({"expert_skew": float("nan")}, "expert_skew must be positive"),
    ],
)
def test_groups_that_cannot_be_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Parallelism(**fields)
