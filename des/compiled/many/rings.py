"""Exchanges of gradients between domains, plan by plan, equal to the event-driven engine.

Pipelines and exchanges do not meet. Replicas share no domain, so a message of a pipeline takes a
link between two domains of one replica and a message of an exchange one between two replicas; each
direction of a direct link serves in turn by itself, and senders never wait. So the pipelines are
simulated first (`des.compiled.many.pipelines`), each as if alone, and leave the times at which
buckets are made. Messages of exchanges do meet, where buckets use the same links: they are gone
through event by event in the engine's order of (time, class, number), see `des.clock`, with its
arithmetic.
"""

import math

from des.base.jit import kernel
from des.compiled.kernels.intrinsics import views_of
from des.compiled.many.family_layout import (
    AFTER_PIPELINE,
    AFTER_STEP,
    ALONE,
    BEHIND_BACKWARD,
    ExchangeKinds,
    ExchangeScripts,
    FamilyRows,
    PassTimes,
    ReplicaExchange,
    RingJob,
    RingRoom,
)
from des.compiled.many.layout import Real
from des.compiled.many.ring_buckets import divide_buckets, domain_of, lay_out
from des.compiled.many.ring_events import pop_event, push_event

MEMBER = 1 << 50
"""Rank of member 0: above those of all messages."""


@kernel
def step_times(
    rows: FamilyRows,
    kinds: ExchangeKinds,
    scripts: ExchangeScripts,
    job: RingJob,
    passes: PassTimes,
    room: RingRoom,
    times_s: Real,
) -> None:
    """Write the time of the step of every plan, or of its exchange alone, (N,). [s]

    It is not finite where a plan needs a link that there is not.
    """
    tables = views_of(rows), views_of(kinds), views_of(scripts), views_of(job), views_of(passes)
    space, found_s = views_of(room), views_of(times_s)
    for plan in range(times_s.size):
        first, num_replicas = rows.first[plan], rows.first[plan + 1] - rows.first[plan]
        numbers = rows.exchange[plan], rows.script[plan], first, num_replicas
        found_s[plan] = _step_s(ReplicaExchange(*tables, space, *numbers))


@kernel
def _step_s(plan: ReplicaExchange) -> float:
    """Time of the step of a plan, or of its exchange alone; not finite without a link. [s]"""
    start, gathered_bits = plan.kinds.start[plan.kind], plan.kinds.gathered_bits[plan.kind]
    end_s = update_s = 0.0
    if start != ALONE:
        end_s, update_s = _end_of_passes(plan, plan.num_replicas if gathered_bits > 0.0 else 1)
    num_buckets = lay_out(plan) if plan.num_replicas > 1 else 0
    if num_buckets < 0:
        return math.inf
    if num_buckets == 0:
        return end_s + update_s
    _release(plan, num_buckets, end_s + update_s)
    longest_s = max(end_s, _run(plan, num_buckets))
    if gathered_bits > 0.0:
        divide_buckets(plan, num_buckets, gathered_bits)
        for member in range(num_buckets * plan.num_replicas):
            plan.room.ready_s[member] = longest_s + update_s
        return _run(plan, num_buckets)
    return longest_s if start == AFTER_STEP else longest_s + update_s


@kernel
def _end_of_passes(plan: ReplicaExchange, shards: int) -> tuple[float, float]:
    """Time of the last pass, and of the slowest update of its share behind it. [s]"""
    pipelines, job = plan.rows.pipelines, plan.job
    end_s = longest_s = 0.0
    for pipeline in range(plan.first, plan.first + plan.num_replicas):
        begin = 0
        for stage in range(pipelines.num_stages[pipeline]):
            own_s = plan.passes.end_s[pipeline, stage]
            end_s = own_s if own_s > end_s else end_s
            domain, end = pipelines.domain[pipeline, stage], pipelines.end_layer[pipeline, stage]
            num_parameters = job.parameters_before[end] - job.parameters_before[begin]
            own_s = num_parameters / shards * job.update_s[domain, 0] + job.update_s[domain, 1]
            longest_s, begin = own_s if own_s > longest_s else longest_s, end
    return end_s, longest_s


@kernel
def _release(plan: ReplicaExchange, num_buckets: int, late_s: float) -> None:
    """Write when each member is ready, see `des.program.exchange_lists`. [s]"""
    start, room = plan.kinds.start[plan.kind], plan.room
    for replica in range(plan.num_replicas):
        pipeline, ready_s = plan.first + replica, 0.0
        if start == AFTER_PIPELINE:
            for stage in range(plan.rows.pipelines.num_stages[pipeline]):
                own_s = plan.passes.end_s[pipeline, stage]
                ready_s = own_s if own_s > ready_s else ready_s
        elif start == AFTER_STEP:
            ready_s = late_s
        for bucket in range(num_buckets):
            member, layer = bucket * plan.num_replicas + replica, room.first_layer[bucket]
            if start == BEHIND_BACKWARD:
                ready_s = _made_s(plan, pipeline, room.member_stage[member], layer)
            room.ready_s[member] = ready_s


@kernel
def _made_s(plan: ReplicaExchange, pipeline: int, stage: int, layer: int) -> float:
    """Time at which the last pass of a stage comes down to a layer. [s]"""
    end_layers, before = plan.rows.pipelines.end_layer, plan.job.backward_before
    begin = end_layers[pipeline, stage - 1] if stage > 0 else 0
    left = (before[layer] - before[begin]) / (before[end_layers[pipeline, stage]] - before[begin])
    start_s, end_s = plan.passes.start_s[pipeline, stage], plan.passes.end_s[pipeline, stage]
    made_s: float = end_s - left * (end_s - start_s)
    return made_s if made_s > start_s else start_s


@kernel
def _run(plan: ReplicaExchange, num_buckets: int) -> float:
    """Go through the events of the exchanges in order; returns when the last member is done. [s]"""
    scripts, room, num_replicas = plan.scripts, plan.room, plan.num_replicas
    num_messages, first_message = (
        scripts.num_messages[plan.script],
        scripts.first_message[plan.script],
    )
    first_member = scripts.first_member[plan.script]
    num_events, end_s = 0, 0.0
    for message in range(num_buckets * num_messages):
        room.arrival_s[message] = math.inf
    for member in range(num_buckets * num_replicas):
        room.awaited[member] = -1
        room.step[member] = scripts.first_step[first_member + member % num_replicas]
        push_event(room.event_s, room.event_rank, num_events, room.ready_s[member], MEMBER + member)
        num_events += 1
    while num_events > 0:
        now_s, rank = room.event_s[0], room.event_rank[0]
        pop_event(room.event_s, room.event_rank, num_events)
        num_events -= 1
        member = rank - MEMBER
        if rank < MEMBER:
            bucket = rank // num_messages
            waiting = scripts.waits[first_message + rank - bucket * num_messages]
            member = bucket * num_replicas + waiting
            room.step[member] += 1
            room.awaited[member] = -1
        num_events = _go_on(plan, member, now_s, rank, num_events)
        end_s = now_s if now_s > end_s else end_s
    return end_s


@kernel
def _go_on(plan: ReplicaExchange, member: int, now_s: float, rank: int, num_events: int) -> int:
    """Let a member send, and receive what has arrived, until it has to wait or is done."""
    scripts, room, num_replicas = plan.scripts, plan.room, plan.num_replicas
    bucket = member // num_replicas
    replica, here = member - bucket * num_replicas, domain_of(plan, member)
    end_step = scripts.first_step[scripts.first_member[plan.script] + replica + 1]
    while room.step[member] < end_step:
        step = room.step[member]
        message = bucket * scripts.num_messages[plan.script] + scripts.message[step]
        receiver = scripts.receiver[step]
        if receiver >= 0:
            after = bucket * num_replicas + receiver
            there = domain_of(plan, after)
            arrival_s = _carry(plan.job, room, here, there, room.part_bytes[bucket], now_s)
            room.arrival_s[message] = arrival_s
            if room.awaited[after] == message:
                push_event(room.event_s, room.event_rank, num_events, arrival_s, message)
                num_events += 1
        else:
            arrival_s = room.arrival_s[message]
            if arrival_s > now_s or (arrival_s == now_s and message > rank):
                room.awaited[member] = message
                if arrival_s < math.inf:
                    push_event(room.event_s, room.event_rank, num_events, arrival_s, message)
                    num_events += 1
                break
        room.step[member] = step + 1
    return num_events


@kernel
def _carry(
    job: RingJob, room: RingRoom, here: int, there: int, num_bytes: float, now_s: float
) -> float:
    """Send a message over a link; returns when it arrives. [s]"""
    free_s, last_s = room.free_s[here, there], room.last_arrival_s[here, there]
    end_s = (free_s if free_s > now_s else now_s) + job.overhead_s
    end_s += num_bytes / job.goodput_bytes_per_s[here, there]
    arrival_s: float = end_s + job.latency_s[here, there]
    arrival_s = arrival_s if arrival_s > last_s else last_s
    room.free_s[here, there], room.last_arrival_s[here, there] = end_s, arrival_s
    return arrival_s
