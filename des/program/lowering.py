"""Lowering: a plan for a job on a world, turned into the program that engines run."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, repeat
from typing import Any

from des.costs.feasibility import orders_of_plan, peaks_of_plan
from des.costs.inner_sums import half_sum_s, halves_after, halves_before, left_fraction
from des.costs.local_borders import border_inside, summed_part_inside
from des.costs.memory import Peaks, memory_of_peaks
from des.costs.stage_times import stage_times_s
from des.costs.update_times import update_s
from des.job.workload import Workload
from des.plan.buckets import Bucket, buckets_behind, buckets_of
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.exchange_steps import num_parts
from des.plan.placement import Stage
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
from des.schedules import Border, Order, check_orders, peaks_held
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
) -> Program:
    """Turn one iteration of a plan into a program.

    Parameters
    ----------
    step
        Position of the iteration in the training, from 0: replicas that do not synchronise after
        every step do so after some.

    Raises
    ------
    ValueError
        If the plan does not match the workload or the topology, or its schedule cannot be had.
    UnreachableError
        If the plan sends between domains that no path joins.
    """
    plan.check_against(topology, workload)
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise ValueError(f"simulate: step must be a whole number of at least 0, got {step!r}")
    orders = orders_of_plan(topology, workload, plan, corrections)
    return _program(
        topology,
        workload,
        plan,
        corrections,
        orders=orders,
        peaks=peaks_of_plan(workload, plan, orders),
        buckets=buckets_of(workload, plan, step),
    )


def lower_orders(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    orders: Sequence[Order],
    corrections: Corrections = NO_CORRECTIONS,
) -> Program:
    """Turn an iteration with given orders instead of the plan's schedule into a program.

    Raises
    ------
    ValueError
        As `lower`, if the orders do not do each pass of each microbatch once and in turn, or if
        the plan has several replicas.
    """
    plan.check_against(topology, workload)
    if plan.replicas:
        raise ValueError(f"simulate_orders: plan must have one replica, got {len(plan.placements)}")
    check_orders(orders, plan.device_of_stage, workload.num_microbatches)
    return _program(
        topology,
        workload,
        plan,
        corrections,
        orders=tuple(orders),
        peaks=peaks_held(tuple(orders)),
        buckets=buckets_of(workload, plan, 0),
    )


def lower_exchange_behind(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    step: int,
    corrections: Corrections = NO_CORRECTIONS,
) -> Program:
    """Turn the exchange that starts after a step and continues behind the next ones into a program.

    It has members only, none where nothing is due or what is due does not wait.
    """
    lowering = _Lowering(topology, workload, plan, corrections)
    buckets = [replace(one, after_step=True) for one in buckets_behind(workload, plan, step)]
    members = lowering.members(buckets)
    return lowering.draft.program(
        workers=(), members=members, num_devices=max(plan.device_of_stage) + 1
    )


def _program(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    corrections: Corrections,
    *,
    orders: tuple[Order, ...],
    peaks: Peaks,
    buckets: Sequence[Bucket],
) -> Program:
    """Put the parts together; late members come last, as their buckets do."""
    if topology.transport.hosts is not None and corrections.transport is not None:
        raise ValueError(
            "corrections: transport must be left out where the hosts of the world's transport have "
            "windows, got a law"
        )
    lists, workers = worker_lists(orders, plan.replica_sizes, plan.device_of_stage)
    lowering = _Lowering(topology, workload, plan, corrections, lists)
    stages = lowering.stages()
    lowering.add_pipelines()
    members = lowering.members(buckets)
    program = lowering.draft.program(
        workers=workers,
        members=members,
        stages=stages,
        num_devices=max(plan.device_of_stage) + 1,
        update_s=update_s(topology, workload, plan, corrections),
        memory=memory_of_peaks(topology, workload, plan, peaks),
        useful_flops=workload.flops_per_iteration,
        peak_flops_per_s=topology.peak_flops_per_s,
    )
    if not plan.holds_senders_up(topology):
        return with_runtime(topology, program, corrections)
    if topology.transport.runtime.rendezvous:
        raise ValueError(
            "plan: sends must be overlapped where the runtime of the transport has a rendezvous, "
            f"got {plan.sends}"
        )
    return blocking_sends(program)


class _Lowering:
    """The parts of a plan, and the draft that they are numbered in."""

    def __init__(
        self,
        topology: Topology,
        workload: Workload,
        plan: Plan,
        corrections: Corrections,
        lists: Sequence[OperationList] = (),
    ) -> None:
        self._topology, self._workload, self._plan = topology, workload, plan
        self._corrections = corrections
        self._groups = list(range(len(plan.stages)))  # of stages that release exchanges together
        if not plan.exchange.overlapped:
            sizes = enumerate(plan.replica_sizes)
            self._groups = [replica for replica, size in sizes for _ in range(size)]
        self.draft = ProgramDraft(topology, lists)

    def stages(self) -> tuple[StageEntry, ...]:
        """Figures of all stages; each pass over their share of microbatches makes gradients."""
        topology, workload, plan = self._topology, self._workload, self._plan
        times_s = stage_times_s(
            topology, workload, plan.stages, self._corrections, plan.parallelism
        )
        shares = plan.microbatches_of_replicas(workload.num_microbatches)
        counts = chain.from_iterable(map(repeat, shares, plan.replica_sizes))
        rows = zip(plan.stages, times_s, self._groups, counts, strict=True)
        return tuple(
            StageEntry(
                topology.domains[stage.domain].name,
                stage.device,
                stage.first_layer,
                stage.num_layers,
                tuple(times[kind] for kind in PASSES),
                group,
                num_gradients,
            )
            for stage, times, group, num_gradients in rows
        )

    def add_pipelines(self) -> None:
        """Add two flows a stage, which receives them: activations and gradients."""
        workload, plan = self._workload, self._plan
        num_stages, num_messages = len(plan.stages), workload.num_microbatches
        num_bytes = workload.message_bytes / plan.activation_compression
        border_of = partial(
            border_inside, self._topology, workload, plan, corrections=self._corrections
        )
        flows = [MessageFlow(NONE, num_messages)] * (FLOWS_PER_STAGE * num_stages)
        ends = set(accumulate(plan.replica_sizes))
        for behind in (one for one in range(1, num_stages) if one not in ends):
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
        border_of: Callable[[tuple[Stage, Stage]], Border],
        *mark: Any,
    ) -> MessageFlow:
        """Messages between two stages: over links, inside the domain or the device."""
        (here, there), border = (self._plan.stages[one] for one in ends), _NO_BORDER
        sender, receiver = (self._plan.device_of_stage[one] for one in ends)
        if here.domain != there.domain:
            channel = self.draft.over_links(here.domain, there.domain)
        else:
            channel, border = self.draft.inside(sender, receiver), border_of((here, there))
        delays_s = border.transfer_s, border.latency_s
        return MessageFlow(channel, num_messages, sender, num_bytes, *delays_s, ends[0], *mark)

    def members(self, buckets: Sequence[Bucket]) -> tuple[ExchangeMember, ...]:
        """Members bucket by bucket, whose messages become flows."""
        found: list[ExchangeMember] = []
        for number, bucket in enumerate(buckets):
            script, first_flow = INSIDE, len(self.draft.flows)
            if bucket.between_domains:
                tree, is_half = self._plan.exchange.tree, bucket.half is not None
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
        part_bytes = bucket.num_bytes / num_parts(self._plan.exchange.tree, len(bucket.stages))
        border_of = partial(
            summed_part_inside,
            self._topology,
            self._plan,
            part_bytes=part_bytes,
            corrections=self._corrections,
        )
        for sender, receiver, count in script.flows:
            ends = bucket.stages[sender], bucket.stages[receiver]
            self.draft.flows.append(self._flow(ends, count, part_bytes, border_of, "G", number, 0))

    def _member(
        self, bucket: Bucket, index: int, operations: OperationList, flows: tuple[int, ...]
    ) -> ExchangeMember:
        """The part of a stage's device in an exchange, its own halves included."""
        topology, workload, plan = self._topology, self._workload, self._plan
        stage, is_late = plan.stages[index], bucket.after_step
        half_s = half_sum_s(topology, workload, plan, stage, bucket, corrections=self._corrections)
        if half_s is not None:
            halves = halves_before(plan, stage, bucket), halves_after(bucket)
            operations = with_reduces(operations, *halves)
        left = 0.0
        if plan.exchange.overlapped and not is_late:
            left = left_fraction(workload, stage, bucket)
        worker = Worker(self.draft.list_number(operations), plan.device_of_stage[index], (), flows)
        return ExchangeMember(worker, NONE if is_late else self._groups[index], left, half_s or 0.0)
