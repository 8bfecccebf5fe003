"""Input and output of a compiled simulation: arrays of records, and their meaning.

`ProgramArrays` describe an iteration before it starts. A `State` is its output, and
changes while it runs; `des.compiled.kernels.general.run_program` sets it up again, so one serves
many programs. Arrays may be longer than a program needs: counts of its header and ranges in its
records say which part is used. Positions are -1 where there is nothing.
"""

from typing import NamedTuple

import numpy as np

SAME_DEVICE, LOCAL_WIRE, LINKS = range(3)
"""Ways of a message: none, over a wire inside a domain, or over links."""

STEADY, UNIFORM, TABLE = range(3)
"""Links stand still; are drawn by seed every interval; follow a table of pieces."""

OK, STARVED, DEADLOCK, BEYOND, FULL = range(5)
"""Ends of a run: whole; a message waits for a link that is down for ever; workers wait for each
other; a time beyond the table of pieces; no room for what is taken of a gate."""

_I, _F = np.int64, np.float64
HEADER = np.dtype(
    [
        ("num_workers", _I),
        ("num_stages", _I),
        ("num_devices", _I),
        ("num_groups", _I),
        ("num_messages", _I),
        ("num_links", _I),
        ("num_media", _I),
        ("num_gates", _I),
        ("num_local_wires", _I),
        ("num_members", _I),
        ("num_late", _I),  # members, the last ones, that wait for the end of the step
        ("num_initial", _I),  # messages 0, 1, ... that leave at time 0
        ("is_listed", _I),  # workers do steps, and messages may wait for notices
        ("is_fair", _I),
        ("is_unshared", _I),  # every message has links and local wires to itself
        ("is_one_in_flight", _I),
        ("has_windows", _I),  # of the hosts, which delay messages
        ("is_continued", _I),  # windows are as the step before left them, which took before_s
        ("before_s", _F),
        ("has_start_up", _I),  # the law of the transport delays messages
        ("is_recorded", _I),  # whether spans and transfers are written down
        ("weather", _I),
        ("update_s", _F),  # of the step, before late members begin
        ("message_overhead_s", _F),
        ("window_bytes", _F),  # inf where there is none
        ("seed", _I),  # from here on for UNIFORM only
        ("start_s", _F),
        ("interval_s", _F),
        ("bandwidth_fluctuation", _F),
        ("latency_jitter", _F),
    ],
    align=True,
)

WORKER = np.dtype(
    [
        ("first_operation", _I),
        ("end_operation", _I),
        ("device", _I),
        ("is_alone", _I),  # no other worker is on its device; 0 where workers do steps
        ("first_step", _I),  # where workers do steps
        ("end_step", _I),
    ]
)

OPERATION = np.dtype(
    [
        ("work", _I),  # 4 * stage + pass: F, B, D, W; odd ones make gradients of parameters
        ("input", _I),  # message that it waits for
        ("output", _I),  # message that it sends
    ]
)

STAGE = np.dtype(
    [
        ("group", _I),
        ("num_gradients", _I),  # passes that make gradients
    ]
)

GROUP = np.dtype([("first_release", _I), ("end_release", _I)])
"""Stages that release members together, when the last one has its gradients."""

DURATION = np.dtype([("s", _F)])

RELEASE = np.dtype([("member", _I), ("left_fraction", _F)], align=True)
"""A member, and how much of the last pass of its group is left when its bucket has been made."""

FLOW = np.dtype(
    [
        ("way", _I),
        ("first_hop", _I),  # among the hops; the local wire under LOCAL_WIRE
        ("num_hops", _I),
        ("receiver", _I),  # worker, or num_workers + member
        ("sender", _I),  # worker that does nothing until each message has arrived
        ("endpoint", _I),  # device whose messages leave one at a time under one_in_flight
        ("num_bytes", _F),
        ("transfer_s", _F),  # over the local wire
        ("latency_s", _F),  # of the local wire
        ("to_notice", _I),  # from the number of a message to that of its notice; 0: it has none
        ("to_message", _I),  # from the number of a notice to that of its message; 0: it is none
    ],
    align=True,
)
"""Messages of the same sender, receiver, size and way."""

FLOW_OF = np.dtype([("flow", _I)])

HOP = np.dtype([("link", _I)])

PIECE = np.dtype(
    [("until_s", _F), ("from_s", _F), ("bandwidth_factor", _F), ("latency_factor", _F)]
)

MEMBER = np.dtype(
    [
        ("device", _I),
        ("first_step", _I),
        ("end_step", _I),
        ("reduce_s", _F),  # of one collective inside the device
    ],
    align=True,
)

STEP = np.dtype([("action", _I), ("message", _I)])
"""A pass, a collective inside, or a message that is sent or waited for: `des.program.program`.

To post a receive is to send its notice; to wait until a message is taken, to wait for that.
"""


class ProgramArrays(NamedTuple):
    """One iteration (or one change of plan) as arrays; the kernels only read it."""

    header: np.ndarray
    """HEADER, one record."""
    workers: np.ndarray
    """WORKER."""
    operations: np.ndarray
    """OPERATION, worker by worker in order."""
    durations_s: np.ndarray
    """DURATION by ``work`` of an operation."""
    stages: np.ndarray
    """STAGE; read only where there are members."""
    groups: np.ndarray
    """GROUP."""
    releases: np.ndarray
    """RELEASE, group by group."""
    flows: np.ndarray
    """FLOW. Those of the pipeline first: 2 * receiving stage + (0 forward, 1 gradient)."""
    flow_of: np.ndarray
    """FLOW_OF: the flow of each message."""
    hops: np.ndarray
    """HOP: the links of all flows."""
    links: np.ndarray
    """LINK."""
    media: np.ndarray
    """MEDIUM."""
    pieces: np.ndarray
    """PIECE, link by link in order, with gaps; read only under TABLE."""
    members: np.ndarray
    """MEMBER, bucket by bucket."""
    steps: np.ndarray
    """STEP, worker by worker where these do steps, then member by member."""
    start_ups: np.ndarray
    """Fields of `des.costs.start_up.StartUp` of each link; read only where there is a law."""
    gates: np.ndarray
    """GATE."""
    link_gates: np.ndarray
    """LINK_GATE: the gates of all links, link by link."""


OUTCOME = np.dtype(
    [
        ("status", _I),
        ("num_running", _I),  # workers, members and initial messages that are not done
        ("num_transfers", _I),
        ("num_queued", _I),
        ("gate_room", _I),  # most pieces of a gate
        ("num_used", _I),  # links that messages use, where they have gates and fair rates
        ("has_gap", _I),  # the first event has been taken out and nothing put in its place
        ("link", _I),  # where the status is STARVED or BEYOND
        ("time_s", _F),  # requested, under BEYOND
        ("end_s", _F),  # of the last operation, exchange or initial message: the makespan
    ],
    align=True,
)

EVENT = np.dtype([("time_s", _F), ("rank", np.int64)])

WORKER_STATE = np.dtype(
    [
        ("end_s", _F),  # of its last operation, or of the message that it waited for behind it
        ("position", _I),  # of the operation that it does or waits to do
        ("waits_for", _I),
        ("blocked_by", _I),
        ("step", _I),  # that it does next, where workers do steps
    ],
    align=True,
)

DEVICE_STATE = np.dtype(
    [
        ("free_s", _F),
        ("inner_free_s", _F),
        ("message", _I),  # that is on its way from here, under one_in_flight
        ("head", _I),  # of the messages that wait for that
        ("tail", _I),
    ],
    align=True,
)

LOCAL_WIRE_STATE = np.dtype([("free_s", _F)])

ARRIVAL = np.dtype([("s", _F)])

STAGE_STATE = np.dtype([("busy_s", _F), ("num_left", _I)], align=True)

GROUP_STATE = np.dtype([("end_s", _F), ("num_left", _I)], align=True)

PARCEL = np.dtype(
    [
        ("start_s", _F),
        ("level_bytes", _F),  # at which it leaves, under fair sharing
        ("hop", _I),
        ("has_come", _I),  # and spends its overhead, under fair sharing
        ("following", _I),  # behind it at its endpoint, or on its wire under fair sharing
        ("has_arrived", _I),  # this and the next where workers do steps
        ("is_held", _I),  # is sent and waits for its notice
    ],
    align=True,
)

MEMBER_STATE = np.dtype([("step", _I), ("waits_for", _I)])

SPAN = np.dtype([("start_s", _F), ("end_s", _F)])

TRANSFER = np.dtype(
    [("message", _I), ("link", _I), ("start_s", _F), ("end_s", _F), ("arrival_s", _F)]
)


class State(NamedTuple):
    """Output of a run; see `des.compiled.state.new_state` for the lengths."""

    outcome: np.ndarray
    """OUTCOME, one record."""
    events: np.ndarray
    """EVENT: a binary heap."""
    workers: np.ndarray
    """WORKER_STATE."""
    devices: np.ndarray
    """DEVICE_STATE."""
    stages: np.ndarray
    """STAGE_STATE."""
    groups: np.ndarray
    """GROUP_STATE."""
    local_wires: np.ndarray
    """LOCAL_WIRE_STATE: when each is free."""
    arrivals: np.ndarray
    """ARRIVAL of each message at its receiver, inf while that is not known."""
    parcels: np.ndarray
    """PARCEL: each message on links; not read for one that has a single hop, first come."""
    links: np.ndarray
    """LINK_STATE."""
    media: np.ndarray
    """MEDIUM_STATE."""
    members: np.ndarray
    """MEMBER_STATE."""
    spans: np.ndarray
    """SPAN of each operation, where it is recorded."""
    transfers: np.ndarray
    """TRANSFER of each message and hop in the order of leaving, where it is recorded."""
    gates: np.ndarray
    """GATE_STATE."""
    gate_pieces: np.ndarray
    """GATE_PIECE: as many for each gate as there is room for."""
