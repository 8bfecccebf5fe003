"""CPUs and memory next to GPUs: what a process that drives them is best bound to."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from des.base.grouping import grouped
from des.devices.server import Gpu, NumaNode, Server
from des.devices.spans import format_spans, numbers_in, spans_of

_GIB = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """CPUs of a NUMA node, cores before their second threads; ``share`` is that of the GPUs."""

    cpus: tuple[int, ...]
    share: float


def optimal_cpus(
    server: Server, gpus: Sequence[int], count: int | None = None, *, taken: Collection[int] = ()
) -> tuple[int, ...]:
    """Choose CPUs for a process that drives some GPUs.

    CPUs of the GPUs' own nodes come first, as many for each GPU; then those of other nodes, the
    nearest first and evenly from equally near ones. Of a node the lowest numbers are taken: these
    are cores, before the second threads of them.

    Parameters
    ----------
    gpus
        Numbers of the GPUs, as the driver counts.
    count
        CPUs wanted; None: all of the own nodes.
    taken
        CPUs that others have.

    Raises
    ------
    ValueError
        If a GPU is not there, CPUs near it are not known, or there are fewer CPUs than wanted.

    Examples
    --------
    >>> from des.devices.presets import simulated
    >>> optimal_cpus(simulated("dgx-h100"), [0, 4], 4)
    (0, 1, 56, 57)
    """
    own, *others = _pools(server, _gpus_of(server, gpus), frozenset(taken))
    near = sum(len(pool.cpus) for pool in own)
    wanted = near if count is None else count
    most = near + sum(len(pool.cpus) for pools in others for pool in pools)
    if not 1 <= wanted <= most:
        raise ValueError(
            f"{server.name}: count must be from 1 to {most}, the CPUs known that are not taken "
            f"({near} next to {_name(gpus)}), got {wanted}"
        )
    chosen: list[int] = []
    for pools in (own, *others):
        chosen += _spread(pools, wanted - len(chosen))
    return tuple(sorted(chosen))


def memory_nodes(
    server: Server, gpus: Sequence[int], needed_bytes: float | None = None
) -> tuple[int, ...]:
    """Choose NUMA nodes for the memory of a process that drives some GPUs.

    Nodes of the GPUs themselves; where their free memory is too little, the nearest others too.
    Memory of GPUs that the system has as a node is left out.

    Parameters
    ----------
    needed_bytes
        Memory that must be free on the nodes; None: whatever there is.

    Raises
    ------
    ValueError
        If a node of a GPU or the free memory is not known, or too little is free on all nodes; the
        message names the largest amount that fits.
    """
    driven = _gpus_of(server, gpus)
    own = sorted({node for gpu in driven for node in gpu.numa_nodes})
    lost = [gpu.name for gpu in driven if not gpu.numa_nodes]
    if lost:
        raise ValueError(f"{server.name}: NUMA nodes of {', '.join(lost)} are not known")
    if needed_bytes is None:
        return tuple(own)
    of_gpus = {gpu.memory_numa_node for gpu in server.gpus}
    free = {
        node.number: node.free_bytes
        for node in server.numa_nodes
        if node.number not in of_gpus and node.free_bytes is not None
    }
    if not set(own) <= set(free):
        raise ValueError(
            f"{server.name}: free memory of NUMA nodes {format_spans(spans_of(own))} is not known; "
            "numactl --hardware or sysfs has it"
        )
    chosen = list(own)
    for group in _other_nodes(server, own):
        for number in group:
            if sum(free[node] for node in chosen) < needed_bytes and free.get(number):
                chosen.append(number)
    fits = sum(free[node] for node in chosen)
    if fits < needed_bytes:
        raise ValueError(
            f"{server.name}: memory must be at most {fits / _GIB:.1f} GiB, free on NUMA nodes "
            f"{format_spans(spans_of(chosen))} together "
            f"({sum(free[node] for node in own) / _GIB:.1f} GiB next to {_name(gpus)}), "
            f"got {needed_bytes / _GIB:.1f} GiB"
        )
    return tuple(sorted(chosen))


def numactl_line(cpus: Iterable[int], nodes: Iterable[int]) -> str:
    """Write the command that binds a process; without nodes its memory stays free.

    Examples
    --------
    >>> numactl_line([0, 1, 2, 8], [0])
    'numactl --physcpubind=0-2,8 --membind=0'
    """
    memory = format_spans(spans_of(nodes))
    bound = f" --membind={memory}" if memory else ""
    return f"numactl --physcpubind={format_spans(spans_of(cpus))}{bound}"


def _gpus_of(server: Server, numbers: Sequence[int]) -> list[Gpu]:
    of_number = {gpu.number: gpu for gpu in server.gpus}
    if not numbers or len(set(numbers)) < len(numbers) or not set(numbers) <= set(of_number):
        raise ValueError(
            f"{server.name}: gpus must be one or more different ones of "
            f"{format_spans(spans_of(of_number))}, got {','.join(map(str, numbers)) or 'none'}"
        )
    return [of_number[number] for number in numbers]


def _name(gpus: Iterable[int]) -> str:
    return f"GPUs {format_spans(spans_of(gpus))}"


def _pools(server: Server, gpus: Sequence[Gpu], taken: frozenset[int]) -> list[list[_Pool]]:
    """CPUs of the GPUs' own nodes, then those of other nodes, each list equally near."""
    cpus_of = _cpus_of_nodes(server)
    allowed: dict[int | None, set[int]] = {}
    shares: dict[int | None, float] = {}
    for gpu in gpus:
        near = set(numbers_in(gpu.cpus))
        nodes: Sequence[int | None] = gpu.numa_nodes if set(gpu.numa_nodes) & set(cpus_of) else ()
        if not nodes and not near:
            raise ValueError(f"{server.name}: CPUs near {gpu.name} are not known")
        for node in nodes or (None,):
            there = set(cpus_of.get(node, ())) if node is not None else near
            allowed.setdefault(node, set()).update(there & near or there)
            shares[node] = shares.get(node, 0.0) + 1 / max(1, len(nodes))
    own = [node for node in allowed if node is not None]
    used = set(taken).union(*allowed.values())
    pools = [
        [
            _Pool(cpus=tuple(sorted(cpus - taken)), share=shares[node])
            for node, cpus in allowed.items()
        ]
    ]
    for group in _other_nodes(server, own):
        pools.append([])
        for node in group:
            left = tuple(cpu for cpu in cpus_of.get(node, ()) if cpu not in used)
            pools[-1].append(_Pool(cpus=left, share=1.0))
            used.update(left)
    return pools


def _cpus_of_nodes(server: Server) -> dict[int, tuple[int, ...]]:
    """CPUs by node; of a server whose nodes are not known, those near GPUs of one node."""
    if server.numa_nodes:
        return {node.number: numbers_in(node.cpus) for node in server.numa_nodes}
    near: dict[int, set[int]] = {}
    for gpu in server.gpus:
        if len(gpu.numa_nodes) == 1 and gpu.cpus:
            near.setdefault(gpu.numa_nodes[0], set()).update(numbers_in(gpu.cpus))
    return {node: tuple(sorted(cpus)) for node, cpus in sorted(near.items())}


def _other_nodes(server: Server, own: Sequence[int]) -> list[list[int]]:
    """Nodes that are not a GPU's own, the nearest first; without distances all are equally far."""
    place = {node.number: place for place, node in enumerate(server.numa_nodes)}
    others = (node for node in _cpus_of_nodes(server) if node not in own)
    far = grouped((_distance(server.numa_nodes, place, own, node), node) for node in others)
    return [far[distance] for distance in sorted(far)]


def _distance(
    nodes: Sequence[NumaNode], place: dict[int, int], own: Sequence[int], node: int
) -> float:
    known = [
        nodes[place[one]].distances[place[node]]
        for one in own
        if one in place and node in place and nodes[place[one]].distances
    ]
    return min(known, default=float("inf"))


def _spread(pools: Sequence[_Pool], count: int) -> list[int]:
    """Take CPUs from pools in proportion to their shares, as far as each has some."""
    given = [0] * len(pools)
    for _ in range(min(count, sum(len(pool.cpus) for pool in pools))):
        place = min(
            (place for place, pool in enumerate(pools) if given[place] < len(pool.cpus)),
            key=lambda place: (given[place] / pools[place].share, place),
        )
        given[place] += 1
    return [cpu for pool, number in zip(pools, given, strict=True) for cpu in pool.cpus[:number]]
