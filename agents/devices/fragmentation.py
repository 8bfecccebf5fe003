"""Fragmentation of free GPUs: what the next jobs of a mix get less than from GPUs kept together.

The free GPUs of all servers are compared with as many that are kept together as well as can be: a
server without other jobs. For a job of ``m`` GPUs drawn from the mix the loss is

- 0 if not even all free GPUs together, or no whole server, has ``m``: that is a lack of GPUs,
- 1 if they would do but no server has ``m`` free,
- else the share of NVLinks that is lost: 1 - most NVLinks inside ``m`` free GPUs of a server, over
  the most inside ``m`` GPUs of a whole server (0 where that has none).

Fragmentation is the expected loss, in [0, 1]. The measure of [1]_ is given as well: the expected
share of the free GPUs that are on servers with too few for the job.

References
----------
.. [1] Q. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
   Gradient Descent", USENIX ATC'23, for jobs of whole GPUs.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from agents.devices.free_gpus import FreeGpus
from agents.devices.goodness import pair_figures, score_of_places
from agents.devices.greedy_sets import greedy_places
from agents.devices.set_tables import MOST_IN_SETS, most_by_size, set_sums
from des.base.checks import require_count
from des.devices.server import Server

EVEN_MIX: Mapping[int, float] = MappingProxyType({1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0})
"""Jobs of 1, 2, 4 and 8 GPUs, as many of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragmentation:
    """Loss of the next jobs.

    Attributes
    ----------
    fraction
        Expected loss of a job of the mix against free GPUs kept together.
    unplaced_fraction
        Share of the jobs that no server has enough free GPUs for, lack of GPUs included.
    unusable_fraction
        Expected share of the free GPUs on servers with too few for a job (FGD).
    is_exact
        Whether all sets were looked at, on servers of at most 16 GPUs.
    """

    fraction: float
    unplaced_fraction: float
    unusable_fraction: float
    is_exact: bool


def fragmentation(
    servers: Sequence[FreeGpus], mix: Mapping[int, float] = EVEN_MIX
) -> Fragmentation:
    """Measure the fragmentation of free GPUs for a mix of jobs.

    Parameters
    ----------
    servers
        Servers and their free GPUs.
    mix
        Weights of jobs by their number of GPUs, of any sum.

    Raises
    ------
    ValueError
        If there are no servers, or the mix is empty or has a weight that is not positive.

    Examples
    --------
    Two servers with 4 of 8 GPUs free each: jobs of 8 find no place, though 8 GPUs are free.

    >>> from des.devices.server import Gpu, Server
    >>> switch = Server(
    ...     name="switch",
    ...     gpus=tuple(Gpu(number=number) for number in range(8)),
    ...     tokens=tuple(
    ...         tuple("X" if one == other else "NV18" for other in range(8)) for one in range(8)
    ...     ),
    ... )
    >>> halves = [FreeGpus(name=name, server=switch, numbers=(0, 1, 2, 3)) for name in "ab"]
    >>> found = fragmentation(halves, {4: 1.0, 8: 1.0})
    >>> found.fraction, found.unusable_fraction
    (0.5, 0.5)
    """
    if not servers:
        raise ValueError("fragmentation: servers must be at least one, got none")
    check_mix(mix)
    total = math.fsum(mix.values())
    most_free = _most_of_all([(each.server, each.places) for each in servers], mix)
    whole = [(each.server, tuple(range(each.server.num_gpus))) for each in servers]
    most_whole = _most_of_all(whole, mix)
    num_free = sum(len(each.numbers) for each in servers)
    losses, unplaced, unusable = [], [], []
    for size, weight in mix.items():
        best = most_free.get(size)
        ideal = most_whole.get(size) if size <= num_free else None
        losses.append(weight * _loss(best, ideal))
        unplaced.append(weight * (best is None))
        small = sum(len(each.numbers) for each in servers if len(each.numbers) < size)
        unusable.append(weight * (small / max(num_free, 1)))
    return Fragmentation(
        fraction=math.fsum(losses) / total,
        unplaced_fraction=math.fsum(unplaced) / total,
        unusable_fraction=math.fsum(unusable) / total,
        is_exact=all(each.server.num_gpus <= MOST_IN_SETS for each in servers),
    )


def check_mix(mix: Mapping[int, float]) -> None:
    """Refuse a mix without jobs, and weights that are not positive."""
    if not mix:
        raise ValueError("mix: must hold at least one size of jobs, got none")
    for size, weight in mix.items():
        require_count("mix", "size", size)
        if not 0 < weight < math.inf:
            raise ValueError(
                f"mix: weight of jobs of {size} GPUs must be positive and finite, got {weight!r}"
            )


def _loss(best: int | None, whole: int | None) -> float:
    """Loss of a job, by the most NVLinks it can have and those of a whole server."""
    if whole is None:
        return 0.0
    if best is None:
        return 1.0
    return 1.0 - best / whole if whole else 0.0


def _most_of_all(
    servers: Iterable[tuple[Server, tuple[int, ...]]], sizes: Iterable[int]
) -> dict[int, int]:
    """Most NVLinks inside some GPUs of one of the servers; without the sizes that none has."""
    distinct = {(id(server), places): (server, places) for server, places in servers}
    found: dict[int, int] = {}
    for server, places in distinct.values():  # equal servers, looked at once
        for size, most in _most_nvlinks(server, places, sizes).items():
            found[size] = max(found.get(size, 0), most)
    return found


def _most_nvlinks(server: Server, places: Sequence[int], sizes: Iterable[int]) -> dict[int, int]:
    """Maximum of NVLinks inside a subset of the GPUs at places, for each feasible size."""
    possible = [size for size in sizes if size <= len(places)]
    if len(places) <= MOST_IN_SETS:
        figures, gpus = pair_figures(server), np.array(places, dtype=np.int64)
        sums = set_sums(figures.packed[np.ix_(gpus, gpus)], figures.packed_cards[gpus])
        most = most_by_size(sums, len(places))
        return {size: int(most[size]) for size in possible}
    return {
        size: score_of_places(server, greedy_places(server, size, places), ()).nvlinks
        for size in possible
    }
