"""Lowering: a plan for a job on a world, turned into the program that engines run."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from des.costs.bound_stages import BoundStage, by_device
from des.costs.feasibility import assign
from des.costs.inner_sums import half_sum_s, halves_after, halves_before, left_fraction
from des.costs.local_borders import border_inside, sum_part_inside
from des.costs.memory import gpu_memory, kept_bytes, memory_of_peaks
from des.costs.stage_times import stage_times_s
from des.costs.update_times import update_s
from des.job.workload import Workload
from des.plan.buckets import Bucket, buckets_of
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.exchange_steps import num_parts
from des.plan.gradient_exchange import GradientExchange
from des.plan.plan import Plan
from des.program.actions import NONE, PASSES
from des.program.draft import ProgramDraft
from des.program.exchange_lists import INSIDE, ExchangeScript, exchange_script, with_reduces
from des.program.passes import blocking_sends
from des.program.program import (
    ExchangeMember,
    MessageFlow,
    OperationList,
    Program,
    StageEntry,
    Worker,
)
from des.program.rendezvous import with_runtime
from des.program.worker_lists import FLOWS_PER_STAGE, worker_lists
from des.schedules import Border, Order
from des.world.topology import Topology

_NO_BORDER = Border()
"""Border of messages over links, whose time is not known before."""


def lower(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    step: int = 0,
    orders: Sequence[Order] | None = None,
) -> Program:
    """Turn one iteration of a plan into a program.

    Parameters
    ----------
    step
        Position of the iteration in the training, from 0: replicas that do not synchronise after
        every step do so after some.
    orders
        Orders instead of those of the plan's schedule, for a plan of one replica.

    Raises
    ------
    ValueError
        If the plan does not match the workload or the topology, its schedule cannot be had, or the
        orders do not do each pass of each microbatch once and in turn.
    UnreachableError
        If the plan sends between domains that no path joins.
    """
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise ValueError(f"simulate: step must be a whole number of at least 0, got {step!r}")
    assigned = assign(topology, workload, plan, corrections, orders=orders)
    stages = assigned.stages
    lists, workers = worker_lists(
        assigned.orders, assigned.replica_sizes, tuple(one.device for one in stages)
    )
    lowering = _Lowering(topology, workload, stages, corrections, plan.exchange, lists=lists)
    lowering.add_pipelines(workload.message_bytes / plan.activation_compression)
    devices = by_device(stages).values()
    program = lowering.draft.program(
        workers=workers,
        members=lowering.members(buckets_of(workload, plan, step)),
        stages=lowering.stages(assigned.shares),
        num_devices=len(devices),
        update_s=update_s(workload, stages, corrections),
        memory=memory_of_peaks(workload, topology.domains, stages, assigned.peaks),
        devices=tuple(gpu_memory(workload, own) for own in devices),
        useful_flops=workload.flops_per_iteration,
        peak_flops_per_s=topology.peak_flops_per_s,
    )
    return _as_run(topology, program, corrections, sends_wait=plan.holds_senders_up(topology))


def lower_exchange(
    topology: Topology,
    workload: Workload,
    stages: Sequence[BoundStage],
    buckets: Sequence[Bucket],
    corrections: Corrections = NO_CORRECTIONS,
    *,
    exchange: GradientExchange,
) -> Program:
    """Turn an exchange that starts after a step and has the devices to itself into a program.

    It has members only, none where there is no bucket.
    """
    lowering = _Lowering(topology, workload, stages, corrections, exchange)
    members = lowering.members([replace(one, after_step=True) for one in buckets])
    return lowering.draft.program(workers=(), members=members, num_devices=len(by_device(stages)))


def _as_run(
    topology: Topology, program: Program, corrections: Corrections, *, sends_wait: bool
) -> Program:
    """Add what the runtime of the transport and the trainer's sends do."""
    if topology.transport.hosts is not None and corrections.transport is not None:
        raise ValueError(
            "corrections: transport must be left out where the hosts of the world's transport have "
            "windows, got a law"
        )
    if not sends_wait:
        return with_runtime(topology, program, corrections)
    if topology.transport.runtime.rendezvous:
        raise ValueError(
            "plan: sends must be overlapped where the runtime of the transport has a rendezvous, "
            "got blocking"
        )
    return blocking_sends(program)


class _Lowering:
    """The stages of an iteration, and the draft that their parts are numbered in."""

    def __init__(
        self,
        topology: Topology,
        workload: Workload,
        stages: Sequence[BoundStage],
        corrections: Corrections,
        exchange: GradientExchange,
        *,
        lists: Sequence[OperationList] = (),
    ) -> None:
        self._workload, self._stages = workload, stages
        self._exchange, self._corrections = exchange, corrections
        self.draft = ProgramDraft(topology, lists)

    def stages(self, shares: Sequence[int]) -> tuple[StageEntry, ...]:
        """Figures of all stages; each pass over their share of microbatches makes gradients."""
        times_s = stage_times_s(self._workload, self._stages, self._corrections)
        found = []
        for number, (one, times) in enumerate(zip(self._stages, times_s, strict=True)):
            whole, halved = kept_bytes(self._workload, one)
            found.append(
                StageEntry(
                    one.domain.name,
                    one.stage.device,
                    one.stage.first_layer,
                    one.stage.num_layers,
                    (whole / one.num_gpus, halved / one.num_gpus),
                    tuple(times[kind] for kind in PASSES),
                    self._group(number),
                    shares[one.replica],
                )
            )
        return tuple(found)

    def _group(self, number: int) -> int:
        """Stages that release their exchanges together: each alone, or those of a replica."""
        return number if self._exchange.overlapped else self._stages[number].replica

    def add_pipelines(self, num_bytes: float) -> None:
        """Add two flows a stage, which receives them: activations and gradients."""
        num_messages = self._workload.num_microbatches
        border_of = partial(border_inside, self._workload, corrections=self._corrections)
        flows = [MessageFlow(NONE, num_messages)] * (FLOWS_PER_STAGE * len(self._stages))
        for behind, (one, other) in enumerate(pairwise(self._stages), start=1):
            if one.replica != other.replica:
                continue
            for kind, sender, receiver in (("F", behind - 1, behind), ("B", behind, behind - 1)):
                flows[FLOWS_PER_STAGE * receiver + (kind == "B")] = self._flow(
                    (sender, receiver), num_messages, num_bytes, border_of, kind
                )
        self.draft.flows += flows

    def _flow(
        self,
        ends: tuple[int, int],
        num_messages: int,
        num_bytes: float,
        border_of: Callable[[BoundStage, BoundStage], Border],
        *mark: Any,
    ) -> MessageFlow:
        """Messages between two stages: over links, inside the domain or the device."""
        (here, there), border = (self._stages[one] for one in ends), _NO_BORDER
        if here.stage.domain != there.stage.domain:
            channel = self.draft.over_links(here.stage.domain, there.stage.domain)
        else:
            channel, border = self.draft.inside(here.device, there.device), border_of(here, there)
        delays_s = border.transfer_s, border.latency_s
        return MessageFlow(channel, num_messages, here.device, num_bytes, *delays_s, ends[0], *mark)

    def members(self, buckets: Sequence[Bucket]) -> tuple[ExchangeMember, ...]:
        """Members bucket by bucket, whose messages become flows; late ones last, as buckets are."""
        found: list[ExchangeMember] = []
        for number, bucket in enumerate(buckets):
            script, first_flow = INSIDE, len(self.draft.flows)
            if bucket.between_domains:
                tree, is_half = self._exchange.tree, bucket.half is not None
                script = exchange_script(tree, len(bucket.stages), is_half=is_half)
                self._add_exchange(number, bucket, script)
            for place, (index, operations) in enumerate(
                zip(bucket.stages, script.lists, strict=True)
            ):
                flows = tuple(first_flow + port for port in script.ports[place])
                found.append(self._member(bucket, index, operations, flows))
        return tuple(found)

    def _add_exchange(self, number: int, bucket: Bucket, script: ExchangeScript) -> None:
        """Add the messages of an exchange, each of a part of the bucket."""
        part_bytes = bucket.num_bytes / num_parts(self._exchange.tree, len(bucket.stages))
        border_of = partial(sum_part_inside, part_bytes, corrections=self._corrections)
        for sender, receiver, count in script.flows:
            ends = bucket.stages[sender], bucket.stages[receiver]
            self.draft.flows.append(self._flow(ends, count, part_bytes, border_of, "G", number, 0))

    def _member(
        self, bucket: Bucket, index: int, operations: OperationList, flows: tuple[int, ...]
    ) -> ExchangeMember:
        """The part of a stage's device in an exchange, its own halves included."""
        one, is_late, left = self._stages[index], bucket.after_step, 0.0
        half_s = half_sum_s(self._workload, one, bucket, self._corrections)
        if half_s is not None:
            operations = with_reduces(operations, halves_before(one, bucket), halves_after(bucket))
        if self._exchange.overlapped and not is_late:
            left = left_fraction(self._workload, one, bucket)
        worker = Worker(self.draft.list_number(operations), one.device, (), flows)
        group = NONE if is_late else self._group(index)
        return ExchangeMember(worker, group, left, half_s or 0.0)
