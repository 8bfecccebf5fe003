"""Members of exchanges of gradients, and the messages between them."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from des.costs.inner_sums import half_sum_s, halves_after, halves_before, left_fraction
from des.costs.local_borders import summed_part_inside
from des.job.workload import Workload
from des.plan.buckets import Bucket
from des.plan.corrections import Corrections
from des.plan.exchange_steps import exchange_steps, num_parts
from des.plan.plan import Plan
from des.program.flow_table import NO_BORDER, FlowTable
from des.program.program import (
    NONE,
    REDUCE,
    SEND,
    WAIT,
    ExchangeMember,
    MessageFlow,
    OperationList,
    Worker,
)
from des.program.worker_lists import ListTable, shared_lists
from des.world.topology import Topology


class _Script(NamedTuple):
    """Steps of an exchange of some number of members, whoever they are.

    ``flows`` are (sender, receiver, number of messages), by receiver; ``lists`` and ``ports`` are
    what each member does and the flows that it does it with.
    """

    flows: tuple[tuple[int, int, int], ...]
    lists: tuple[OperationList, ...]
    ports: tuple[tuple[int, ...], ...]


_INSIDE = _Script((), tuple(shared_lists([()])), ((),))
"""Exchange that stays in one device."""


@lru_cache(maxsize=1024)
def _script(tree: tuple[int, ...], num_members: int, *, is_half: bool) -> _Script:
    """Lists of all members, from `exchange_steps`; its messages become items of flows."""
    steps = exchange_steps(tree, num_members, is_half=is_half)
    flows: list[tuple[int, int, int]] = []
    place_of: list[tuple[int, int]] = []  # flow and item of each message
    for receiver, own in enumerate(steps):
        for sender, waits in groupby(step.other for step in own if not step.is_sent):
            count = len(list(waits))
            place_of += ((len(flows), item) for item in range(count))
            flows.append((sender, receiver, count))
    lists, ports = [], []
    for own in steps:
        numbers: dict[int, int] = {}
        found = []
        for step in own:
            flow, item = place_of[step.message]
            port = numbers.setdefault(flow, len(numbers))
            found.append((SEND if step.is_sent else WAIT, port, item))
        lists.append(found)
        ports.append(tuple(numbers))
    return _Script(tuple(flows), tuple(shared_lists(lists)), tuple(ports))


@lru_cache(maxsize=1024)
def _with_reduces(operations: OperationList, num_before: int, num_after: int) -> OperationList:
    """Put halves of an all-reduce inside the device before the steps of a member, and behind."""
    before, after = ([(REDUCE, 0, 0)] * count for count in (num_before, num_after))
    return shared_lists([[*before, *map(tuple, operations.rows.tolist()), *after]])[0]


def exchange_members(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    buckets: Sequence[Bucket],
    *,
    table: ListTable,
    flows: FlowTable,
    corrections: Corrections,
) -> list[ExchangeMember]:
    """Return the members bucket by bucket; their lists and messages join the tables."""
    members = []
    groups = release_groups(plan)
    for number, bucket in enumerate(buckets):
        script = _INSIDE
        if bucket.between_domains:
            is_half = bucket.half is not None
            script = _script(plan.exchange.tree, len(bucket.stages), is_half=is_half)
        first_flow = len(flows.flows)
        _add_flows(flows, topology, plan, script, bucket, number=number, corrections=corrections)
        for position, index in enumerate(bucket.stages):
            stage = plan.stages[index]
            half_s = half_sum_s(topology, workload, plan, stage, bucket, corrections=corrections)
            operations = script.lists[position]
            if half_s is not None:
                halves = halves_before(plan, stage, bucket), halves_after(bucket)
                operations = _with_reduces(operations, *halves)
            worker = Worker(
                table.number(operations),
                plan.device_of_stage[index],
                (),
                tuple(first_flow + flow for flow in script.ports[position]),
            )
            is_early = plan.exchange.overlapped and not bucket.after_step
            members.append(
                ExchangeMember(
                    worker,
                    NONE if bucket.after_step else groups[index],
                    left_fraction(workload, stage, bucket) if is_early else 0.0,
                    half_s or 0.0,
                )
            )
    return members


def release_groups(plan: Plan) -> list[int]:
    """Group of each stage: by itself where exchanges overlap the passes, else its replica."""
    if plan.exchange.overlapped:
        return list(range(len(plan.stages)))
    return [replica for replica, size in enumerate(plan.replica_sizes) for _ in range(size)]


def _add_flows(
    flows: FlowTable,
    topology: Topology,
    plan: Plan,
    script: _Script,
    bucket: Bucket,
    *,
    number: int,
    corrections: Corrections,
) -> None:
    """Add the messages of an exchange, each of a part of the bucket."""
    part_bytes = bucket.num_bytes / num_parts(plan.exchange.tree, len(bucket.stages))
    for sender, receiver, count in script.flows:
        before, index = bucket.stages[sender], bucket.stages[receiver]
        here, there = plan.stages[before], plan.stages[index]
        devices = (plan.device_of_stage[before], plan.device_of_stage[index])
        border = NO_BORDER
        if here.domain != there.domain:
            channel = flows.over_links(topology.route(here.domain, there.domain))
        else:
            channel = flows.inside(*devices)
            border = summed_part_inside(topology, plan, (here, there), part_bytes, corrections)
        flows.flows.append(
            MessageFlow(
                channel,
                count,
                devices[0],
                part_bytes,
                border.transfer_s,
                border.latency_s,
                stage=before,
                kind="G",
                label=number,
                label_step=0,
            )
        )
