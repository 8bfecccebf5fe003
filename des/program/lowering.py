"""Lowering: a plan for a job on a world, turned into the program that engines run."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain, pairwise, repeat

from des.costs.feasibility import orders_of_plan, peaks_of_plan
from des.costs.local_borders import border_inside
from des.costs.memory import Peaks, memory_of_peaks
from des.costs.stage_times import stage_times_s
from des.costs.update_times import update_s
from des.job.workload import Workload
from des.plan.buckets import Bucket, buckets_behind, buckets_of
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.program.exchange_lists import exchange_members, release_groups
from des.program.flow_table import NO_BORDER, FlowTable
from des.program.passes import blocking_sends
from des.program.program import NONE, PASSES, MessageFlow, Program, StageEntry, Worker
from des.program.worker_lists import FLOWS_PER_STAGE, ListTable, worker_lists
from des.schedules import Order, check_orders, peaks_held
from des.world.topology import Topology


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
    table, flows = ListTable(), FlowTable()
    buckets = [replace(one, after_step=True) for one in buckets_behind(workload, plan, step)]
    members = exchange_members(
        topology, workload, plan, buckets, table=table, flows=flows, corrections=corrections
    )
    return Program(
        operations=table.lists,
        workers=(),
        members=tuple(members),
        channels=flows.channels,
        flows=tuple(flows.flows),
        num_devices=max(plan.device_of_stage) + 1,
        has_queues=topology.transport.sharing != "none",
        links=tuple(topology.link_index),
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
    lists, ordered = worker_lists(orders, plan.replica_sizes)
    devices = plan.device_of_stage
    table, flows = ListTable(lists), FlowTable()
    stages = _stage_entries(topology, workload, plan, corrections)
    _add_pipelines(flows, topology, workload, plan, corrections)
    members = exchange_members(
        topology, workload, plan, buckets, table=table, flows=flows, corrections=corrections
    )
    program = Program(
        operations=table.lists,
        workers=tuple(
            Worker(one.operations, devices[one.stages[0]] if one.stages else NONE, *one[1:])
            for one in ordered
        ),
        members=tuple(members),
        stages=stages,
        channels=flows.channels,
        flows=tuple(flows.flows),
        num_devices=max(devices) + 1,
        has_queues=topology.transport.sharing != "none",
        update_s=update_s(topology, workload, plan, corrections),
        links=tuple(topology.link_index),
        memory=memory_of_peaks(topology, workload, plan, peaks),
        useful_flops=workload.flops_per_iteration,
        peak_flops_per_s=topology.peak_flops_per_s,
    )
    return blocking_sends(program) if plan.holds_senders_up(topology) else program


def _stage_entries(
    topology: Topology, workload: Workload, plan: Plan, corrections: Corrections
) -> tuple[StageEntry, ...]:
    """Figures of all stages; each pass over the stage's share of microbatches makes gradients."""
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    times_s = stage_times_s(topology, workload, plan.stages, corrections, plan.parallelism)
    sizes = zip(shares, plan.replica_sizes, strict=True)
    counts = chain.from_iterable(repeat(share, size) for share, size in sizes)
    rows = zip(plan.stages, times_s, release_groups(plan), counts, strict=True)
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


def _add_pipelines(
    table: FlowTable, topology: Topology, workload: Workload, plan: Plan, corrections: Corrections
) -> None:
    """Add two flows a stage, which receives them: activations and gradients."""
    unused = MessageFlow(NONE, workload.num_microbatches)
    table.flows = [unused] * (FLOWS_PER_STAGE * len(plan.stages))
    ends = set(accumulate(plan.replica_sizes))
    num_bytes = workload.message_bytes / plan.activation_compression
    for upper, lower_one in pairwise(range(len(plan.stages))):
        if lower_one in ends:
            continue
        for kind, sender, receiver in (("F", upper, lower_one), ("B", lower_one, upper)):
            here, there = plan.stages[sender], plan.stages[receiver]
            devices = plan.device_of_stage[sender], plan.device_of_stage[receiver]
            if here.domain != there.domain:
                channel = table.over_links(topology.route(here.domain, there.domain))
                border = NO_BORDER
            else:
                channel = table.inside(*devices)
                border = border_inside(topology, workload, plan, (here, there), corrections)
            table.flows[FLOWS_PER_STAGE * receiver + (kind == "B")] = MessageFlow(
                channel,
                workload.num_microbatches,
                devices[0],
                num_bytes,
                border.transfer_s,
                border.latency_s,
                stage=sender,
                kind=kind,
            )
