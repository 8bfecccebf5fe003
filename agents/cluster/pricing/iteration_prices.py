"""Prices of iterations: the simulator's figures of a job on shares of its links, computed once."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self

import des.compiled.simulate
from des.base.jit import source_digest
from des.base.keyed_store import KeyedStore
from des.compiled.simulate import simulate_compiled
from des.job.workload import Workload
from des.plan.plan import Plan
from des.world.topology import Topology

GRID = 64
"""Shares of links are rounded to multiples of 1 / GRID, and are at least that."""

_APPLICATION_ID = 0x45574950  # "EWIP"
_HOLDS = "iteration times"

LinkName = tuple[str, str]
"""Source and target of a link."""


class LinkUseOfJob(NamedTuple):
    """Use of a link by the iterations of a job.

    ``busy_fraction`` is the share of time with messages on it, ``num_messages`` their mean number
    at such times, ``num_bytes`` the bytes of an iteration.
    """

    busy_fraction: float
    num_messages: float
    num_bytes: float


class IterationPrice(NamedTuple):
    """Time of an iteration and the links that it uses. [s]"""

    time_s: float
    links: Mapping[LinkName, LinkUseOfJob]


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacedJob:
    """A job on its GPUs: the domains that it has parts of, its workload and its plan there.

    Attributes
    ----------
    reference_s
        Time of an iteration where its rate is 1. [s]
    priority
        Where links are shared by priority, the highest number goes first.
    """

    topology: Topology
    workload: Workload
    plan: Plan
    reference_s: float
    priority: int = 0

    @cached_property
    def key(self) -> str:
        """Digest of all that the time of an iteration depends on."""
        return sha256(repr((self.topology, self.workload, self.plan)).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationPrices:
    """Prices that were computed before, here or in a file.

    A file knows by which code each entry was made: entries of other code are computed again.
    """

    store: KeyedStore | None = None
    _known: dict[tuple[str, tuple[int, ...]], IterationPrice] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path | None) -> Self:
        """Open or make the file of a path; None: keep prices in memory only."""
        if path is None:
            return cls()
        return cls(store=KeyedStore.open(path, holds=_HOLDS, application_id=_APPLICATION_ID))

    def price(self, job: PlacedJob, shares: Mapping[LinkName, float]) -> IterationPrice:
        """Price of a job that has shares of links, and the whole of those that are not named."""
        parts = tuple(
            on_grid(shares.get((link.source, link.target), 1.0)) for link in job.topology.links
        )
        found = self._known.get((job.key, parts))
        if found is None:
            found = self._store(job, parts)
            self._known[job.key, parts] = found
        return found

    def _store(self, job: PlacedJob, parts: tuple[int, ...]) -> IterationPrice:
        if self.store is None:
            return _simulate(job, parts)
        code = source_digest(Path(des.compiled.simulate.__file__))
        key = f"{code} {job.key} {parts}"
        numbers = self.store.get(key)
        if numbers is None:
            price = _simulate(job, parts)
            names = {(link.source, link.target): n for n, link in enumerate(job.topology.links)}
            cells = [[float(names[link]), *use] for link, use in price.links.items()]
            self.store.put(key, [price.time_s, *(cell for row in cells for cell in row)])
            return price
        rows = [numbers[first : first + 4] for first in range(1, len(numbers), 4)]
        links = job.topology.links
        uses = {
            (links[int(n)].source, links[int(n)].target): LinkUseOfJob(*use) for n, *use in rows
        }
        return IterationPrice(numbers[0], uses)


def on_grid(share: float) -> int:
    """Multiple of 1 / GRID that a share is rounded to.

    Examples
    --------
    >>> on_grid(0.5), on_grid(0.001)
    (32, 1)
    """
    return max(1, round(share * GRID))


def _simulate(job: PlacedJob, parts: tuple[int, ...]) -> IterationPrice:
    """Simulate an iteration on links that have a part of their bandwidth each."""
    topology = job.topology
    links = tuple(
        replace(link, bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * part / GRID)
        for link, part in zip(topology.links, parts, strict=True)
    )
    result = simulate_compiled(replace(topology, links=links), job.workload, job.plan)
    present_s = [0.0] * len(links)
    for transfer in result.transfers:
        present_s[transfer.link] += transfer.end_s - transfer.start_s
    uses = {
        (use.source, use.target): LinkUseOfJob(
            min(1.0, use.busy_s / result.makespan_s),
            max(1.0, present / use.busy_s),
            use.num_bytes,
        )
        for use, present in zip(result.links, present_s, strict=True)
        if use.busy_s > 0
    }
    return IterationPrice(result.makespan_s, uses)
