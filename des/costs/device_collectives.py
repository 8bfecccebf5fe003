"""Times of collectives over GPUs of servers: algorithms over their links, launch and floor.

A time is ``max(floor, launch + steps + bytes)``; steps and bytes are those of
`des.costs.collectives` and `des.costs.node_collectives` over the links of the group. Rings work in
lock step, so each of their steps has the latency of the slowest kind of hop: measured rings over
several servers take as long. ASSUMED: pairs that exchange at once do not share a link, but for the
one between processors (SYS) and the way out of a server.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from des.base.checks import require_non_negative
from des.costs.collectives import (
    all_gather_s,
    halving_all_reduce_s,
    hierarchical_all_reduce_s,
    reduce_scatter_s,
    ring_all_reduce_s,
)
from des.costs.device_groups import DeviceGroup
from des.costs.node_collectives import group_tree_all_reduce_s
from des.devices.closeness import relation
from des.devices.ring_order import Hop, hop_speed

Algorithm = Literal["ring", "tree", "halving", "hierarchical"]
Choice = Literal["as_fitted", "best", "ring", "tree", "halving", "hierarchical"]
Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "point_to_point"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTime:
    """Time of a collective, by which algorithm, and why that one.

    Attributes
    ----------
    time_s
        From its call to its end on the last GPU. [s]
    bus_bandwidth_bytes_per_s
        Bytes that each GPU must send at least, over the time; 0 for a single GPU.
    times_s
        Times of all algorithms that the group can run. [s]
    """

    collective: Collective
    payload_bytes: float
    algorithm: str
    time_s: float
    bus_bandwidth_bytes_per_s: float
    reason: str
    times_s: Mapping[str, float]


def all_reduce_time(
    group: DeviceGroup, payload_bytes: float, choice: Choice = "as_fitted"
) -> CollectiveTime:
    """Time until every GPU holds the sum of a buffer that each has.

    Parameters
    ----------
    payload_bytes
        Buffer of each GPU. [bytes]
    choice
        Algorithm; ``as_fitted`` is the one that the measured times were explained by, below the
        smallest of them the quicker of ring and tree, as NCCL chooses; ``best`` is the one of
        least time.

    Raises
    ------
    ValueError
        If the group cannot run the algorithm, or ``payload_bytes`` is negative.
    """
    times_s = {
        name: _with_launch(group, time(group, payload_bytes))
        for name, time in _ALL_REDUCES.items()
        if name != "hierarchical" or _is_even(group)
    }
    return _result(
        group, "all_reduce", payload_bytes, _choose(group, payload_bytes, choice, times_s), times_s
    )


def collective_time(
    group: DeviceGroup, collective: Collective, payload_bytes: float, choice: Choice = "as_fitted"
) -> CollectiveTime:
    """Time of a collective by its name; all but all-reduce have one algorithm.

    The payload is the buffer after an all-gather, before a reduce-scatter, or of the message from
    the first GPU to the second.

    Raises
    ------
    ValueError
        If the group cannot run it, or an algorithm is chosen that it does not have.
    """
    if collective == "all_reduce":
        return all_reduce_time(group, payload_bytes, choice)
    name = "ring" if collective != "point_to_point" else "point_to_point"
    if choice not in ("as_fitted", "best", name):
        raise ValueError(f"{collective}: algorithm must be {name}, got {choice!r}")
    if collective == "point_to_point":
        bandwidth, latency_s = _message_hop(group)
        require_non_negative("collective", "payload_bytes", payload_bytes)
        time_s = latency_s + payload_bytes / bandwidth
    else:
        in_ring = all_gather_s if collective == "all_gather" else reduce_scatter_s
        time_s = in_ring(payload_bytes, group.num_ranks, *group.ring_hop)
    return _result(
        group,
        collective,
        payload_bytes,
        (name, "the only one"),
        {name: _with_launch(group, time_s)},
    )


def _result(
    group: DeviceGroup,
    collective: Collective,
    payload_bytes: float,
    chosen: tuple[str, str],
    times_s: Mapping[str, float],
) -> CollectiveTime:
    algorithm, reason = chosen
    num, time_s = group.num_ranks, times_s[algorithm]
    share = {"all_reduce": 2 * (num - 1) / num, "point_to_point": 1.0}.get(
        collective, (num - 1) / num
    )
    return CollectiveTime(
        collective=collective,
        payload_bytes=payload_bytes,
        algorithm=algorithm,
        time_s=time_s,
        bus_bandwidth_bytes_per_s=share * payload_bytes / time_s if time_s else 0.0,
        reason=reason,
        times_s=MappingProxyType(dict(times_s)),
    )


def _choose(
    group: DeviceGroup, payload_bytes: float, choice: Choice, times_s: Mapping[str, float]
) -> tuple[str, str]:
    """Algorithm of a choice, and the reason for it."""
    if choice == "best":
        return _quickest(times_s)
    if choice == "as_fitted" and payload_bytes < group.figures.least_bytes:
        name, reason = _quickest({name: times_s[name] for name in ("ring", "tree")})
        return name, f"smaller than all fitted cells, as NCCL chooses: {reason}"
    name = group.figures.algorithm if choice == "as_fitted" else choice
    if name not in times_s:
        raise ValueError(
            f"all_reduce: algorithm must be one of {', '.join(times_s)} for these GPUs "
            f"(hierarchical needs several servers with as many GPUs each), got {name!r}"
        )
    return name, "as the figures were fitted" if choice == "as_fitted" else "as asked"


def _quickest(times_s: Mapping[str, float]) -> tuple[str, str]:
    """Algorithm of least time, and the times of the others."""
    name = min(times_s, key=lambda each: times_s[each])
    others = ", ".join(
        f"{each} {time_s * 1e3:.4g} ms" for each, time_s in times_s.items() if each != name
    )
    return name, f"least time; {others}"


def _with_launch(group: DeviceGroup, time_s: float) -> float:
    """Add the launch, not below the floor; one GPU has nothing to do."""
    if group.num_ranks == 1:
        return 0.0
    launch_s, floor_s = group.launch_and_floor_s
    return max(floor_s, launch_s + time_s)


def _is_even(group: DeviceGroup) -> bool:
    """Whether several servers have as many GPUs each."""
    return len(group.parts) > 1 and len({len(places) for _, places in group.parts}) == 1


def _ring_s(group: DeviceGroup, payload_bytes: float) -> float:
    return ring_all_reduce_s(payload_bytes, group.num_ranks, *group.ring_hop)


def _tree_s(group: DeviceGroup, payload_bytes: float) -> float:
    return group_tree_all_reduce_s(payload_bytes, group.rank_group)


def _hierarchical_s(group: DeviceGroup, payload_bytes: float) -> float:
    ranks = group.rank_group
    return hierarchical_all_reduce_s(
        payload_bytes,
        num_domains=ranks.num_nodes,
        ranks_per_domain=ranks.most_per_node,
        inner_bandwidth_bytes_per_s=ranks.inner_bandwidth_bytes_per_s,
        outer_bandwidth_bytes_per_s=ranks.outer_bandwidth_bytes_per_s,
        inner_latency_s=ranks.inner_latency_s,
        outer_latency_s=ranks.outer_latency_s,
    )


def _halving_s(group: DeviceGroup, payload_bytes: float) -> float:
    """Halving whose largest messages go between neighbours in the rings, server by server."""
    depth = group.num_ranks.bit_length() - 1  # floor(log2 n)
    count = 1 << depth
    steps = [
        [(one, one ^ 1 << step) for one in range(count) if not one >> step & 1]
        for step in range(depth)
    ]
    rest = [(one, one - count) for one in range(count, group.num_ranks)]
    return halving_all_reduce_s(
        payload_bytes,
        [_slowest_pair(group, pairs) for pairs in steps],
        _slowest_pair(group, rest) if rest else None,
    )


_ALL_REDUCES: Mapping[str, Callable[[DeviceGroup, float], float]] = MappingProxyType(
    {"ring": _ring_s, "tree": _tree_s, "halving": _halving_s, "hierarchical": _hierarchical_s}
)


def _slowest_pair(group: DeviceGroup, pairs: list[tuple[int, int]]) -> Hop:
    """Slowest hop of pairs of ranks that exchange at once; ranks are numbered ring by ring."""
    ranks = [(part, at) for part, ring in enumerate(group.rings) for at in ring]
    inside: list[Hop] = []
    over_processors: list[tuple[int, Hop]] = []
    crossing = [0] * len(group.parts)
    for (part, one), (other_part, other) in ((ranks[a], ranks[b]) for a, b in pairs):
        if part != other_part:
            crossing[part] += 1
            crossing[other_part] += 1
            continue
        server, places = group.parts[part]
        link = group.links[part][places.index(one)][places.index(other)]
        hop = (link.bandwidth_bytes_per_s, link.latency_s)
        if relation(server.gpu_tokens[one][other]) == "SYS":
            over_processors.append((part, hop))
        else:
            inside.append(hop)
    sharing = Counter(part for part, _ in over_processors)
    for part, (bandwidth, latency_s) in over_processors:
        inside.append((bandwidth / sharing[part], latency_s))
    if group.network is not None:
        inside += [
            (group.network.way_out_bytes_per_s(count) / count, group.network.step_s)
            for count in crossing
            if count
        ]
    return min(inside, key=hop_speed)


def _message_hop(group: DeviceGroup) -> Hop:
    """Hop of a message between the two GPUs of a group."""
    if group.num_ranks != 2:
        raise ValueError(f"point_to_point: GPUs must be 2, got {group.num_ranks}")
    return group.ring_hop
