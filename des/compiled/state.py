"""States for compiled runs: how long their arrays have to be."""

from typing import NamedTuple

import numpy as np

from des.compiled.kernels.link_records import (
    GATE_PIECE,
    GATE_STATE,
    LINK_STATE,
    MEDIUM_STATE,
)
from des.compiled.kernels.program import (
    ARRIVAL,
    DEVICE_STATE,
    EVENT,
    GROUP_STATE,
    LOCAL_WIRE_STATE,
    MEMBER_STATE,
    OUTCOME,
    PARCEL,
    SPAN,
    STAGE_STATE,
    TRANSFER,
    WORKER_STATE,
    ProgramArrays,
    State,
)


class ProgramSizes(NamedTuple):
    """Counts of a program, and of the pieces of a gate for which there is room."""

    num_workers: int
    num_operations: int
    num_stages: int
    num_devices: int
    num_groups: int
    num_messages: int
    num_transfers: int
    num_links: int
    num_local_wires: int
    num_members: int
    is_recorded: bool
    num_gates: int = 0
    gate_room: int = 0


def new_state(program: ProgramArrays, gate_room: int = 64) -> State:
    """Make a state that can hold a run of a program, and of any with no greater counts.

    ``gate_room`` is for the pieces of a gate; a run that needs more ends as FULL.
    """
    header = program.header[0]
    num_transfers = int(program.flows["num_hops"][program.flow_of["flow"]].sum())
    return make_state(
        ProgramSizes(
            num_workers=int(header["num_workers"]),
            num_operations=len(program.operations),
            num_stages=int(header["num_stages"]),
            num_devices=int(header["num_devices"]),
            num_groups=int(header["num_groups"]),
            num_messages=int(header["num_messages"]),
            num_transfers=num_transfers,
            num_links=int(header["num_links"]),
            num_local_wires=int(header["num_local_wires"]),
            num_members=int(header["num_members"]),
            is_recorded=bool(header["is_recorded"]),
            num_gates=int(header["num_gates"]),
            gate_room=gate_room,
        )
    )


def make_state(sizes: ProgramSizes) -> State:
    """Make a state for programs of at most these counts.

    The queue holds an event for each worker, member and medium, up to two for each message that
    a worker waits for, and under fair sharing a division that was put off for each hop.
    """
    num_events = (
        sizes.num_workers
        + 2 * sizes.num_members
        + sizes.num_links
        + 2 * sizes.num_messages
        + sizes.num_transfers
    )
    lengths = {
        "outcome": (OUTCOME, 1),
        "events": (EVENT, num_events),
        "workers": (WORKER_STATE, sizes.num_workers),
        "devices": (DEVICE_STATE, sizes.num_devices),
        "stages": (STAGE_STATE, sizes.num_stages),
        "groups": (GROUP_STATE, sizes.num_groups),
        "local_wires": (LOCAL_WIRE_STATE, sizes.num_local_wires),
        "arrivals": (ARRIVAL, sizes.num_messages),
        "parcels": (PARCEL, sizes.num_messages),
        "links": (LINK_STATE, sizes.num_links),
        "media": (MEDIUM_STATE, sizes.num_links),
        "members": (MEMBER_STATE, sizes.num_members),
        "spans": (SPAN, sizes.num_operations if sizes.is_recorded else 0),
        "transfers": (TRANSFER, sizes.num_transfers if sizes.is_recorded else 0),
        "gates": (GATE_STATE, sizes.num_gates),
        "gate_pieces": (GATE_PIECE, sizes.num_gates * sizes.gate_room),
    }
    state = State(
        **{name: np.zeros(max(count, 1), kind) for name, (kind, count) in lengths.items()}
    )
    state.outcome["gate_room"] = sizes.gate_room
    return state
