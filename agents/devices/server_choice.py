"""Choice of servers for a job on several: as many GPUs on each, few and close or best fitting."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.devices.fragmentation import fragmentation
from agents.devices.free_gpus import FreeGpus
from agents.devices.gpu_placement import GpuPlacement, optimal_placement
from des.devices.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
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
    """Servers for a job; ``depth`` counts the levels of the network that they all share."""

    shares: tuple[Share, ...]
    depth: int

    @property
    def indices(self) -> tuple[int, ...]:
        """Places of the servers in the list."""
        return tuple(share.index for share in self.shares)

    def num_named(self, names: Collection[str]) -> int:
        """Servers that are among some names."""
        return sum(share.free.name in names for share in self.shares)


def close_servers(
    servers: Sequence[FreeGpus], num_gpus: int, most_each: int, near_data: Collection[str]
) -> ServerChoice | None:
    """Few servers, close to each other; None if there are not enough free GPUs.

    As few servers as there can be with as many GPUs on each. Among those with the most servers near
    the data, then the most shared levels, then the best worst set of GPUs, then the fewest free
    GPUs left on them, then the first in the list.
    """
    for each in _shares(num_gpus, most_each):
        candidates = _candidates(servers, each)
        ranked = sorted(
            candidates,
            key=lambda share: (
                share.free.name not in near_data,
                *(-part for part in share.placement.score.inner_order),
                share.num_left,
                share.index,
            ),
        )
        choices = list(_choices(ranked, num_gpus // each))
        if choices:
            return min(choices, key=lambda choice: _closeness(choice, near_data))
    return None


def _closeness(choice: ServerChoice, near_data: Collection[str]) -> tuple[object, ...]:
    worst = min(share.placement.score.inner_order for share in choice.shares)
    return (
        -choice.num_named(near_data),
        -choice.depth,
        tuple(-part for part in worst),
        sum(share.num_left for share in choice.shares),
        choice.indices,
    )


def fitting_servers(
    servers: Sequence[FreeGpus],
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
            _candidates(servers, each),
            key=lambda share: (share.free.name not in near_data, share.num_left, share.index),
        )
        if len(ranked) >= num_gpus // each:
            choices.append(_choice(ranked[: num_gpus // each]))
    return min(
        choices,
        key=lambda choice: (
            -choice.num_named(near_data) / len(choice.shares),
            *_pieces(servers_after(servers, choice), mix),
            len(choice.shares),
        ),
        default=None,
    )


def _pieces(servers: Sequence[FreeGpus], mix: Mapping[int, float]) -> tuple[float, float]:
    found = fragmentation(servers, mix)
    return found.fraction, found.unusable_fraction


def servers_after(servers: Sequence[FreeGpus], choice: ServerChoice) -> list[FreeGpus]:
    """Servers with the GPUs that are still free when the job has its own."""
    taken = {share.index: set(share.placement.gpus) for share in choice.shares}
    return [
        FreeGpus(
            name=each.name,
            server=each.server,
            numbers=tuple(gpu for gpu in each.numbers if gpu not in taken.get(index, ())),
            levels=each.levels,
        )
        for index, each in enumerate(servers)
    ]


def _shares(num_gpus: int, most_each: int) -> Iterator[int]:
    """Yield numbers of GPUs on each server, the greatest first."""
    return (each for each in range(min(num_gpus, most_each), 0, -1) if num_gpus % each == 0)


def _candidates(servers: Sequence[FreeGpus], each: int) -> list[Share]:
    """Servers with enough free GPUs, and the best of them; equal servers are looked at once."""
    best: dict[tuple[Server, tuple[int, ...]], GpuPlacement] = {}
    found = []
    for index, free in enumerate(servers):
        if len(free.numbers) >= each:
            key = free.server, free.numbers
            if key not in best:
                best[key] = optimal_placement(free.server, each, free.numbers)
            found.append(Share(index=index, free=free, placement=best[key]))
    return found


def _choices(ranked: Sequence[Share], count: int) -> Iterator[ServerChoice]:
    """Yield the first servers of every unit of the network that has enough of them."""
    deepest = max((len(share.free.levels) for share in ranked), default=0)
    for depth in range(deepest, -1, -1):
        units: dict[tuple[str, ...], list[Share]] = {}
        for share in ranked:
            if len(share.free.levels) >= depth:
                units.setdefault(share.free.levels[:depth], []).append(share)
        yield from (_choice(unit[:count]) for unit in units.values() if len(unit) >= count)


def _choice(shares: Sequence[Share]) -> ServerChoice:
    levels = [share.free.levels for share in shares]
    depth = 0
    while all(len(each) > depth for each in levels) and len({each[depth] for each in levels}) == 1:
        depth += 1
    return ServerChoice(shares=tuple(sorted(shares, key=lambda share: share.index)), depth=depth)
