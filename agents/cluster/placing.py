"""Placing: how a job finds its GPUs among the free ones, all of them or none."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from des.cluster.free_gpus import Allocation, FreeCounts, lowest_bit, positions
from des.cluster.live_job import LiveJob


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPlacing(ABC):
    """Base of placings: nodes of the job's domain and type, in one unit of a level if one is given.

    The level is the job's own or, for jobs without, that of the placing. Of the units in which a
    job fits it gets the one with the fewest free GPUs. Where no unit will do, a job whose level is
    required waits; another one is placed anywhere.
    """

    level: str = ""
    is_required: bool = False

    def place(self, free: FreeCounts, job: LiveJob) -> Allocation | None:
        """GPUs of a job, or None; takes none of them."""
        allowed = free.allowed(job.job.domain, job.gpu_type)
        width = job.width
        if width > free.num_free or (allowed != -1 and width > free.free_in(allowed)):
            return None
        level = job.job.level or self.level
        if not level:
            return self.pick(free, width, allowed)
        if level == "node":
            found = best_node(free, width, allowed)
        else:
            found = self._in_a_unit(free, width, allowed, level)
        is_required = job.job.is_level_required if job.job.level else self.is_required
        return found or (None if is_required else self.pick(free, width, allowed))

    def _in_a_unit(
        self, free: FreeCounts, width: int, allowed: int, level: str
    ) -> Allocation | None:
        fits = [
            (count, unit)
            for unit in free.unit_masks(level)
            if (count := free.free_in(unit & allowed)) >= width
        ]
        if not fits:
            return None
        return self.pick(free, width, min(fits)[1] & allowed)

    @abstractmethod
    def pick(self, free: FreeCounts, width: int, allowed: int) -> Allocation | None:
        """GPUs on the nodes of a mask, which have enough free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstFree(UnitPlacing):
    """The first free GPUs in the order of nodes, over as many nodes as it takes."""

    def pick(self, free: FreeCounts, width: int, allowed: int) -> Allocation | None:
        """Fill nodes by number."""
        return filled(free, width, positions(free.nodes_with(1) & allowed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scattered(UnitPlacing):
    """As few GPUs of each node as possible, the emptiest nodes first."""

    def pick(self, free: FreeCounts, width: int, allowed: int) -> Allocation | None:
        """Take GPUs in turns from the nodes with the most free ones."""
        nodes = list(emptiest_first(free, allowed))
        counts = dict.fromkeys(nodes, 0)
        left = width
        while left:
            for node in nodes:
                if counts[node] < free.free_of[node]:
                    counts[node] += 1
                    left -= 1
                    if not left:
                        break
        return tuple(
            free.first_gpus(node, count) for node, count in sorted(counts.items()) if count
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BestFit(UnitPlacing):
    """The node with the fewest free GPUs that will do, else as few nodes as possible."""

    def pick(self, free: FreeCounts, width: int, allowed: int) -> Allocation | None:
        """Take one node, else the emptiest ones and the best fit for the rest."""
        return best_node(free, width, allowed) or fewest_nodes(free, width, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidated(UnitPlacing):
    """As few nodes as the job's number of GPUs allows; it waits until there are such nodes."""

    def pick(self, free: FreeCounts, width: int, allowed: int) -> Allocation | None:
        """Take whole nodes and the best fit for the rest, or nothing."""
        found = best_node(free, width, allowed) or fewest_nodes(free, width, allowed)
        least = -(-width // free.most_per_node)
        return found if found is not None and len(found) <= least else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed(UnitPlacing):
    """Against fragmentation: small jobs fill up the fullest nodes, which keeps whole nodes free."""

    def pick(self, free: FreeCounts, width: int, allowed: int) -> Allocation | None:
        """Take one node; a job that needs several takes wholly free ones, else the fullest."""
        found = best_node(free, width, allowed)
        if found is not None:
            return found
        if width >= free.most_per_node:
            return fewest_nodes(free, width, allowed)
        return filled(free, width, reversed(tuple(emptiest_first(free, allowed))))


def best_node(free: FreeCounts, width: int, allowed: int) -> Allocation | None:
    """GPUs of the first node with the fewest free ones that will do; None if there is none."""
    for nodes in free.with_free[width:]:
        fits = nodes & allowed
        if fits:
            return (free.first_gpus(lowest_bit(fits), width),)
    return None


def fewest_nodes(free: FreeCounts, width: int, allowed: int) -> Allocation | None:
    """GPUs of the emptiest nodes, with the best fit for what is left at last."""
    taken: list[int] = []
    for node in emptiest_first(free, allowed):
        if width <= free.free_of[node]:
            break
        taken.append(node)
        width -= free.free_of[node]
    parts = [free.first_gpus(node, free.free_of[node]) for node in taken]
    rest = allowed & ~sum(1 << node for node in taken)
    last = best_node(free, width, rest)
    if last is None:
        return None
    return tuple(sorted((*parts, *last)))


def emptiest_first(free: FreeCounts, allowed: int) -> Iterator[int]:
    """Nodes of a mask by the number of their free GPUs, most first, without full ones."""
    for nodes in free.with_free[:0:-1]:
        yield from positions(nodes & allowed)


def filled(free: FreeCounts, width: int, nodes: Iterator[int]) -> Allocation | None:
    """Free GPUs of nodes in their order until there are enough; None if there never are."""
    found = []
    for node in nodes:
        part = min(width, free.free_of[node])
        found.append(free.first_gpus(node, part))
        width -= part
        if not width:
            return tuple(sorted(found))
    return None
