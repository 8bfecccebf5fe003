"""Rates and sizes of hand-made runs of the engine, and what they are built of."""

from astra_traces import Case, collective, compute, receive, send

MIB = 2**20
RATE = 50.0 * 2**30 / 10**9
"""Bytes per ns of the links of `network_file`."""
ONE_BYTE_PER_NS = 10**9 / 2**30
"""A bandwidth in GB/s; exact, as both are small multiples of powers of two."""


def world_collective(kind, num_bytes=MIB, *, num_npus=4, **parts):
    """One collective of all NPUs at time 0."""
    return Case(ranks=[[collective(0, kind, num_bytes)]] * num_npus, **parts)


def message(source, target, num_bytes, *, num_npus=4, before_us=(0, 0), **parts):
    """One message, its ends preceded by computations."""
    ranks = [[] for _ in range(num_npus)]
    ends = (
        (source, send(1, target, num_bytes, 0), before_us[0]),
        (target, receive(2, source, num_bytes, 0), before_us[1]),
    )
    for rank, end, duration_us in ends:
        if duration_us:
            ranks[rank].append(compute(end.id + 10, duration_us))
            end.data_deps.append(end.id + 10)
        ranks[rank].append(end)
    return Case(ranks=[nodes or [compute(0, 1)] for nodes in ranks], **parts)
