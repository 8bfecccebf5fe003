"""Choice of servers for a job on several: as many GPUs on each, few and close or best fitting."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agents.devices.fragmentation import fragmentation
from agents.devices.free_gpus import FreeGpus
from agents.devices.gpu_placement import GpuPlacement, optimal_placement
from agents.devices.node_request import ChosenNodes, NodeRequest
from agents.devices.node_sets import choose_nodes
from des.devices.cluster import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerShare:
    """GPUs of one server for a job; ``index`` is the place of the server in the list."""

    index: int
    free: FreeGpus
    placement: GpuPlacement

    @property
    def num_left(self) -> int:
        """Free GPUs that the job leaves on the server."""
        return len(self.free.numbers) - len(self.placement.gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerChoice:
    """Servers for a job, and them as a set of nodes of the cluster."""

    shares: tuple[ServerShare, ...]
    nodes: ChosenNodes

    def num_named(self, names: Collection[str]) -> int:
        """Servers that are among some names."""
        return sum(share.free.name in names for share in self.shares)


@dataclass(frozen=True, kw_only=True)
class ServerPool:
    """Servers with free GPUs, and the cluster in which they are nodes of the same names."""

    cluster: Cluster
    servers: tuple[FreeGpus, ...]

    def __post_init__(self) -> None:
        if not self.servers:
            raise ValueError("placement: servers must be at least one, got none")
        names = [each.name for each in self.servers]
        if len(set(names)) < len(names):
            raise ValueError(f"placement: names of servers must differ, got {', '.join(names)}")
        for name in names:
            if name not in self.cluster.node_named:
                raise ValueError(
                    f"placement: servers must be nodes of the cluster, got {name!r}, which is none"
                )

    def near(self, data: Collection[str]) -> frozenset[str]:
        """Names of the nodes among or below some nodes, switches and NVLink domains.

        Raises
        ------
        ValueError
            If a name is of none of them.
        """
        cluster, wanted = self.cluster, set(data)
        known = {*cluster.node_named, *cluster.switch_named, *(b.name for b in cluster.blocks)}
        if wanted - known:
            raise ValueError(
                "placement: data_locality must be names of nodes, switches or NVLink domains of "
                f"the cluster, got {min(wanted - known)!r}"
            )
        return frozenset(
            node.name
            for node in cluster.nodes
            if wanted and wanted & {node.name, node.block, *cluster.ancestors(node.name)}
        )

    def without_jobs(self) -> "ServerPool":
        """Return the same servers with all of their GPUs free."""
        return ServerPool(
            cluster=self.cluster,
            servers=tuple(
                replace(each, numbers=tuple(gpu.number for gpu in each.server.gpus))
                for each in self.servers
            ),
        )


def close_servers(
    pool: ServerPool,
    num_gpus: int,
    most_each: int,
    near_data: Collection[str],
    *,
    is_spread: bool = False,
) -> ServerChoice | None:
    """Few servers, close to each other; None if there are not enough free GPUs.

    With ``is_spread`` few servers over as many units of the finest level as can be.

    As few servers as there can be with as many GPUs on each. Among those the set that
    `agents.devices.node_sets.choose_nodes` finds: in the smallest unit of the cluster with room,
    with the most servers near the data, then the most on which the best set of GPUs is as good as
    on any, then in the fewest units of each finer level.
    """
    for each in _shares(num_gpus, most_each):
        candidates = _candidates(pool.servers, each)
        if len(candidates) < num_gpus // each:
            continue
        best = max(share.placement.score.inner_order for share in candidates)
        names = [share.free.name for share in candidates]
        request = NodeRequest(
            count=num_gpus // each,
            data=tuple(sorted(near_data)),
            spread=_widest(pool.cluster, names, num_gpus // each) if is_spread else (),
            preferred_nodes=tuple(
                share.free.name for share in candidates if share.placement.score.inner_order == best
            ),
        )
        found = choose_nodes(pool.cluster, names, request)
        taken = set(found.nodes)
        return ServerChoice(
            shares=tuple(share for share in candidates if share.free.name in taken), nodes=found
        )
    return None


def _widest(cluster: Cluster, names: Sequence[str], count: int) -> tuple[tuple[str, int], ...]:
    """The fewest nodes of a unit of the finest level by which ``count`` of some nodes suffice."""
    if not cluster.levels:
        return ()
    finest = cluster.levels[-1]
    place = {node.name: at for at, node in enumerate(cluster.nodes)}
    units = finest.unit_of_node[[place[name] for name in names]]
    each = np.bincount(units[units >= 0])
    free = int((units < 0).sum())
    limits = range(1, count + 1)
    least = next((most for most in limits if np.minimum(each, most).sum() + free >= count), count)
    return ((finest.name, least),)


def fitting_servers(
    pool: ServerPool,
    num_gpus: int,
    most_each: int,
    near_data: Collection[str],
    mix: Mapping[int, float],
) -> ServerChoice | None:
    """Servers whose free GPUs the job fills best; None if there are not enough free GPUs.

    For each equal share of GPUs the servers near the data, then those with the fewest free GPUs
    left, then the first. Among the shares the one with most servers near the data in proportion,
    then the least fragmentation of all free GPUs afterwards (the expected loss, then the share that
    is unusable), then the fewest servers.
    """
    choices = []
    for each in _shares(num_gpus, most_each):
        ranked = sorted(
            _candidates(pool.servers, each),
            key=lambda share: (share.free.name not in near_data, share.num_left, share.index),
        )
        if len(ranked) >= num_gpus // each:
            choices.append(_choice(pool.cluster, ranked[: num_gpus // each]))
    return min(
        choices,
        key=lambda choice: (
            -choice.num_named(near_data) / len(choice.shares),
            *_pieces(servers_after(pool.servers, choice), mix),
            len(choice.shares),
        ),
        default=None,
    )


def _choice(cluster: Cluster, shares: Sequence[ServerShare]) -> ServerChoice:
    names = [share.free.name for share in shares]
    nodes = choose_nodes(cluster, names, NodeRequest(count=len(names)))
    return ServerChoice(shares=tuple(sorted(shares, key=lambda share: share.index)), nodes=nodes)


def _pieces(servers: Sequence[FreeGpus], mix: Mapping[int, float]) -> tuple[float, float]:
    found = fragmentation(servers, mix)
    return found.fraction, found.unusable_fraction


def servers_after(servers: Sequence[FreeGpus], choice: ServerChoice) -> list[FreeGpus]:
    """Servers with the GPUs that are still free when the job has its own."""
    after = list(servers)
    for share in choice.shares:
        taken = set(share.placement.gpus)
        left = tuple(gpu for gpu in share.free.numbers if gpu not in taken)
        after[share.index] = replace(share.free, numbers=left)
    return after


def _shares(num_gpus: int, most_each: int) -> Iterator[int]:
    """Yield numbers of GPUs on each server, the greatest first."""
    return (each for each in range(min(num_gpus, most_each), 0, -1) if num_gpus % each == 0)


def _candidates(servers: Sequence[FreeGpus], each: int) -> list[ServerShare]:
    """Servers with enough free GPUs, and the best of them; equal servers are looked at once."""
    best: dict[tuple[int, tuple[int, ...]], GpuPlacement] = {}
    found = []
    for index, free in enumerate(servers):
        if len(free.numbers) >= each:
            key = id(free.server), free.numbers
            if key not in best:
                best[key] = optimal_placement(free.server, each, free.numbers)
            found.append(ServerShare(index=index, free=free, placement=best[key]))
    return found
