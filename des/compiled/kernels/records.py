"""First records of all arrays of a program and of a state, as kernels hand them on."""

from typing import Any, NamedTuple


class ProgramRun(NamedTuple):
    """The first records of all arrays of a program and of a state."""

    header: Any
    workers: Any
    operations: Any
    durations_s: Any
    stages: Any
    groups: Any
    releases: Any
    flows: Any
    flow_of: Any
    hops: Any
    links: Any
    media: Any
    pieces: Any
    members: Any
    steps: Any
    start_ups: Any
    gates: Any
    link_gates: Any
    outcome: Any
    events: Any
    worker_states: Any
    device_states: Any
    stage_states: Any
    group_states: Any
    local_wires: Any
    arrivals: Any
    parcels: Any
    link_states: Any
    medium_states: Any
    member_states: Any
    spans: Any
    transfers: Any
    gate_states: Any
    gate_pieces: Any
