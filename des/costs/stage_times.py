"""Times of the passes of stages: a pipeline in numbers."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from des.costs.bound_stages import BoundStage, by_device
from des.costs.copy_waits import copy_waits_s
from des.costs.layer_work import WorkBefore, work_before
from des.costs.local_borders import border_inside
from des.costs.memory import activation_room_bytes, kept_bytes
from des.costs.message_times import correct_inside, corrected, hop_goodput_bytes_per_s
from des.costs.node_collectives import group_all_reduce_s, group_ring_all_reduce_s
from des.costs.node_groups import tensor_group
from des.costs.sharded_passes import sharded_waits_s
from des.job.workload import Workload
from des.plan.corrections import Corrections
from des.plan.parallelism import Parallelism
from des.plan.placement import Stage, device_numbers
from des.schedules import Border, Pass, Pipeline
from des.world.domain import Domain
from des.world.topology import Topology

TENSOR_ALL_REDUCES_PER_PASS = 2
"""All-reduces of a layer's output in its forward pass, and as many in its input gradient. With
sequence parallelism each is an all-gather and a reduce-scatter.

M. Shoeybi et al., "Megatron-LM", arXiv:1909.08053, 2019, section 3. The weight gradient has none.
"""


_PASSES: tuple[Pass, ...] = ("F", "B", "D", "W")


def compute_rate_flops_per_s(
    domain: Domain, corrections: Corrections, parallelism: Parallelism | None = None
) -> float:
    """Speed at which one device of a domain works through layers. [FLOP/s]

    Without a parallelism the device is all GPUs of the domain.
    """
    num_gpus = domain.num_gpus if parallelism is None else parallelism.gpus_per_device
    attainable = num_gpus * domain.gpu_peak_flops_per_s * domain.attainable_fraction
    return attainable / corrections.compute_time_factor


def tensor_parallel_s(
    workload: Workload, domain: Domain, parallelism: Parallelism, corrections: Corrections
) -> float:
    """Time that one pass of one layer spends on summing up over the GPUs that share it. [s]

    Every replica of the device holds its share of the microbatch, so of the message that a stage
    sends on, which has the size of the output of any layer. An all-gather and a reduce-scatter
    take the ring, as NCCL has no tree for them.
    """
    group = tensor_group(correct_inside(domain, corrections), parallelism)
    summed_s = group_ring_all_reduce_s if parallelism.sequence_parallel else group_all_reduce_s
    return TENSOR_ALL_REDUCES_PER_PASS * summed_s(
        workload.message_bytes / parallelism.copies, group
    )


def stage_times_s(
    workload: Workload,
    stages: Sequence[BoundStage],
    corrections: Corrections,
    *,
    with_exchanges: bool = True,
) -> list[dict[Pass, float]]:
    """Time of each pass of each stage for one microbatch. [s]

    ``with_exchanges`` counts what the GPUs of a tensor-parallel group send each other.
    """
    times: list[dict[Pass, float]] = []
    known: dict[tuple[int, Parallelism | None], tuple[WorkBefore, float]] = {}  # by domain
    for one in stages:
        own, domain, shared = one.stage, one.domain, one.parallelism
        rate = compute_rate_flops_per_s(domain, corrections, shared)
        if (key := (id(domain), shared)) not in known:
            known[key] = device_work(
                workload, domain, shared, corrections, with_exchanges=with_exchanges
            )
        work, layer_s = known[key]
        found = {kind: own.total(each) / rate for kind, each in zip(_PASSES, work, strict=True)}
        exchange_s = own.num_layers * layer_s
        found |= {kind: found[kind] + exchange_s for kind in ("F", "B", "D")}
        if shared is not None and with_exchanges:
            for kind, each_s in _waits_s(workload, domain, shared, own, corrections).items():
                found[kind] += each_s
        times.append(found)
    return times


def _has_waits(parallelism: Parallelism | None) -> bool:
    """Whether passes wait for messages that a whole backward pass hides better than its halves."""
    if parallelism is None:
        return False
    return parallelism.context > 1 or parallelism.expert > 1 or parallelism.shards("gradients")


def _waits_s(
    workload: Workload,
    domain: Domain,
    parallelism: Parallelism,
    stage: Stage,
    corrections: Corrections,
) -> Mapping[Pass, float]:
    """Time that passes of a stage wait for messages, apart from sums over tensor groups. [s]"""
    waits_s: dict[Pass, float] = {}
    rate = compute_rate_flops_per_s(domain, corrections, parallelism)
    if parallelism.context > 1 or parallelism.expert > 1:
        assert workload.shape is not None  # see `des.plan.sharing_checks`
        waits_s = copy_waits_s(
            workload.shape,
            domain,
            parallelism,
            stage,
            corrections=corrections,
            rate_flops_per_s=rate,
            precision=workload.precision,
        )
    if not parallelism.shards("gradients"):
        return waits_s
    work = work_before(workload, domain, parallelism)
    work_s = {
        kind: [flops / rate for flops in each] for kind, each in zip(_PASSES, work, strict=True)
    }
    more_s = sharded_waits_s(
        workload, domain, parallelism, stage, corrections=corrections, work_s=work_s
    )
    return {kind: waits_s.get(kind, 0.0) + each_s for kind, each_s in more_s.items()}


def device_work(
    workload: Workload,
    domain: Domain,
    parallelism: Parallelism | None,
    corrections: Corrections,
    *,
    with_exchanges: bool = True,
) -> tuple[WorkBefore, float]:
    """Work of a device, and what a layer's passes F, B and D last longer by exchanges. [FLOP, s]

    Where times come from shapes the exchanges are in the work, as they hide behind launches.
    """
    if parallelism is None or not with_exchanges:
        return work_before(workload, domain, parallelism), 0.0
    layer_s = tensor_parallel_s(workload, domain, parallelism, corrections)
    if domain.kernels is None:
        return work_before(workload, domain, parallelism), layer_s
    uncorrected_s = layer_s / corrections.compute_time_factor  # the rate of work is corrected
    return work_before(workload, domain, parallelism, exchange_s=uncorrected_s), 0.0


def pipeline_of(
    topology: Topology,
    workload: Workload,
    stages: Sequence[BoundStage],
    corrections: Corrections,
    num_microbatches: int,
    *,
    compression: float = 1.0,
) -> Pipeline:
    """One replica in numbers, as a schedule may look at it.

    Links are taken as they stand at the start of the iteration, those that are down then by their
    base figures. A route of several hops counts as one border: its slowest wire, and all other
    delays as latency. That links may be shared fairly or by both directions, and that senders may
    have to wait, is not seen.

    A device without room for one microbatch may use what 1F1B holds all the same, so that a plan
    over memory has orders too and can be judged as if it fitted.

    Parameters
    ----------
    compression
        Factor by which messages between domains shrink.
    """
    times_s = stage_times_s(workload, stages, corrections)
    numbers = device_numbers([one.stage for one in stages])
    steady = topology
    if topology.movement is not None:
        bandwidth_factors, latency_factors = topology.factors_at_start()
        bandwidth_factors[bandwidth_factors == 0.0] = 1.0
        steady = topology.scaled(bandwidth_factors, latency_factors)

    def border(sender: BoundStage, receiver: BoundStage) -> Border:
        if sender.stage.domain == receiver.stage.domain:
            return border_inside(workload, sender, receiver, corrections)
        route = steady.route(sender.stage.domain, receiver.stage.domain)
        return _border_over(steady, route, workload.message_bytes / compression, corrections)

    pairs, kept = list(pairwise(stages)), [kept_bytes(workload, one) for one in stages]
    has_waits = any(_has_waits(one.parallelism) for one in stages)
    return Pipeline(
        num_microbatches=num_microbatches,
        device_of_stage=numbers,
        forward_s=tuple(times["F"] for times in times_s),
        input_gradient_s=tuple(times["D"] for times in times_s),
        weight_gradient_s=tuple(times["W"] for times in times_s),
        backward_s=tuple(times["B"] for times in times_s) if has_waits else (),
        down=tuple(border(here, there) for here, there in pairs),
        up=tuple(border(there, here) for here, there in pairs),
        activation_bytes=tuple(whole for whole, _ in kept),
        weight_input_bytes=tuple(halved for _, halved in kept),
        memory_bytes=_rooms_bytes(workload, stages),
    )


def _rooms_bytes(workload: Workload, stages: Sequence[BoundStage]) -> tuple[float, ...]:
    """Memory a schedule may use of each device; without room for one microbatch, that of 1F1B."""
    devices, rooms = by_device(stages).values(), []
    for own in devices:
        held = 0.0
        for one in own:
            held += max(kept_bytes(workload, one))
        room = activation_room_bytes(workload, own)
        if room <= 0.0 or room < held:
            room = len(devices) * held or math.inf  # what weighs nothing fits anywhere
        rooms.append(room)
    return tuple(rooms)


def _border_over(
    topology: Topology, route: Sequence[int], num_bytes: float, corrections: Corrections
) -> Border:
    """Border of messages over a route of links."""
    wires_s, latency_s = [], 0.0
    for hop in route:
        link = corrected(topology.links[hop], corrections)
        rate = hop_goodput_bytes_per_s(topology, hop, corrections)
        wires_s.append(corrections.message_overhead_s + num_bytes / rate)
        latency_s += link.latency_s
    slowest_s = max(wires_s)
    return Border(transfer_s=slowest_s, latency_s=latency_s + sum(wires_s) - slowest_s)
