"""Stages of pipelines whose sites and layers are given: devices of each site, level by level."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from agents.search.candidates import Candidate
from agents.search.chains import Chain
from agents.search.copies import ring_exchange_s
from agents.search.kernels.pipeline_times import MISFIT
from agents.search.settings import BoundSetting
from agents.search.workspace import Workspace
from des.plan.placement import Placement
from des.plan.plan import split_evenly

_NO_LOSS = 1.0 + 1e-9
"""Rounding allowed between times of stages that count as equal."""

_Split = tuple[tuple[int, int], ...]


class GivenChain(NamedTuple):
    """Sites of a pipeline in order, the layers of each, and of its stages where given."""

    sites: Chain
    layers: tuple[int, ...]
    by_stage: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, placement: Placement) -> "GivenChain":
        """Read a placement.

        Raises
        ------
        ValueError
            If it comes back to a domain, as what interleaves follows from the schedule.
        """
        runs = placement.stages
        sites = tuple(run.domain for run in runs)
        if len(set(sites)) < len(sites):
            raise ValueError(
                f"placement: a domain must come once where a trainer divides it into stages; got "
                f"{placement}"
            )
        by_stage = placement.stage_layers or ((),) * len(runs)
        return cls(sites, tuple(run.num_layers for run in runs), by_stage)


def best_pipeline(
    workspace: Workspace, setting: BoundSetting, given: GivenChain
) -> Candidate | None:
    """The quickest devices of each site under a setting; None where no division is possible.

    Layers stay in their sites unless all stages must have equally many: then each site gets the
    whole number of stages next to its layers. A misfit's time tells what it lacks, see `MISFIT`.
    """
    most = _most_devices(workspace, setting, given)
    if min(most) < 1:
        return None
    if setting.is_even:
        splits = (_shared(setting, given, most, count) for count in _even_counts(setting, given))
        return _quickest(workspace, setting, given, [one for one in splits if one is not None])
    devices = _level(workspace, setting, given, most)
    found = _quickest(workspace, setting, given, [tuple(zip(devices, given.layers, strict=True))])
    if found is None or not any(given.by_stage):
        return found
    pairs = zip(devices, given.layers, given.by_stage, strict=True)
    counts = [
        count for number, all_of, own in pairs for count in own or split_evenly(all_of, number)
    ]
    return replace(found, counts=tuple(counts))


def equal_copies(
    workspace: Workspace, setting: BoundSetting, given: Sequence[GivenChain]
) -> Candidate | None:
    """The quickest copies of equally many stages, each with its sites in their order.

    Stages of all copies have equal layers; sites get the number of stages next to their layers.
    """
    setting = replace(setting, num_replicas=len(given))
    most = [_most_devices(workspace, setting, one) for one in given]
    if min(map(min, most)) < 1:
        return None
    best: Candidate | None = None
    for count in range(max(len(one.sites) for one in given), min(map(sum, most)) + 1):
        if setting.is_even and sum(given[0].layers) % count:
            continue
        splits = [_shared(setting, *own, count) for own in zip(given, most, strict=True)]
        found = [
            None if split is None else _quickest(workspace, setting, one, [split])
            for one, split in zip(given, splits, strict=True)
        ]
        joined = join_copies(workspace, setting, found)
        if joined is not None and (best is None or joined.estimate_s < best.estimate_s):
            best = joined
    return best


def join_copies(
    workspace: Workspace, setting: BoundSetting, copies: Sequence[Candidate | None]
) -> Candidate | None:
    """Pipelines side by side; None where one of them is, or no ring of links joins them."""
    own = [one for one in copies if one is not None]
    if len(own) < len(copies):
        return None
    chains = tuple(one.chains[0] for one in own)
    exchange_s = ring_exchange_s(workspace, setting, chains)
    if not np.isfinite(exchange_s):
        return None
    return Candidate(
        setting=setting,
        chains=chains,
        splits=tuple(one.splits[0] for one in own),
        estimate_s=max(one.estimate_s for one in own) + exchange_s,
    )


def lack_bytes(workspace: Workspace, candidate: Candidate) -> float:
    """Memory that the fullest GPU of a misfit lacks, at most. [bytes]"""
    share = candidate.estimate_s / MISFIT - 1.0
    return share * max(
        workspace.topology.domains[site].gpu_memory_bytes for site in candidate.sites
    )


def _most_devices(workspace: Workspace, setting: BoundSetting, given: GivenChain) -> list[int]:
    """Most devices of each site, which need a layer for each chunk; 0 where that cannot be."""
    num_devices = workspace.figures(setting).num_devices
    found = []
    for site, count, own in zip(given.sites, given.layers, given.by_stage, strict=True):
        most = min(int(num_devices[site]), count // setting.num_chunks)
        if own and (setting.num_chunks > 1 or len(own) > most):
            most = 0
        found.append(len(own) if own and most else most)
    return found


def _level(
    workspace: Workspace, setting: BoundSetting, given: GivenChain, most: Sequence[int]
) -> tuple[int, ...]:
    """Devices of each site, from all or from few one more or less as long as that helps."""
    times_s: dict[tuple[int, ...], float] = {}

    def time_s(devices: tuple[int, ...]) -> float:
        if devices not in times_s:
            split = tuple(zip(devices, given.layers, strict=True))
            times_s[devices] = workspace.time_s(setting, given.sites, split)
        return times_s[devices]

    best = min(tuple(most), _lean(workspace, setting, given, most), key=time_s)
    while True:
        near = [
            (*best[:at], best[at] + change, *best[at + 1 :])
            for at in range(len(best))
            for change in (-1, 1)
            if not given.by_stage[at] and 1 <= best[at] + change <= most[at]
        ]
        better = min(near, key=time_s, default=best)
        if not time_s(better) < time_s(best):
            return best
        best = better


def _lean(
    workspace: Workspace, setting: BoundSetting, given: GivenChain, most: Sequence[int]
) -> tuple[int, ...]:
    """Fewest devices of each site whose stages take no longer than the slowest site's."""
    passes_s = workspace.figures(setting).passes_s
    layer_s = [float(passes_s[site, 0, -1] + passes_s[site, 1, -1]) for site in given.sites]
    all_of = list(zip(layer_s, given.layers, most, strict=True))
    slowest_s = max(own_s * -(-count // number) for own_s, count, number in all_of)
    return tuple(
        number
        if own
        else next(
            few
            for few in range(1, number + 1)
            if few == number or own_s * -(-count // few) <= _NO_LOSS * slowest_s
        )
        for (own_s, count, number), own in zip(all_of, given.by_stage, strict=True)
    )


def _even_counts(setting: BoundSetting, given: GivenChain) -> Iterator[int]:
    """Numbers of devices of a pipeline whose stages all have equally many layers."""
    num_layers = sum(given.layers)
    least = len(given.sites)
    return (
        count
        for count in range(least, num_layers // setting.num_chunks + 1)
        if num_layers % (count * setting.num_chunks) == 0
    )


def _shared(
    setting: BoundSetting, given: GivenChain, most: Sequence[int], num_workers: int
) -> _Split | None:
    """Devices of each site next to its part of the layers, and their even layers, site by site."""
    if sum(most) < num_workers:
        return None
    num_layers = sum(given.layers)
    wanted = [num_workers * count / num_layers for count in given.layers]
    devices = [min(number, max(1, int(want))) for want, number in zip(wanted, most, strict=True)]
    while (left := num_workers - sum(devices)) != 0:
        step = 1 if left > 0 else -1
        free = [at for at, own in enumerate(devices) if 1 <= own + step <= most[at]]
        if not free:
            return None
        devices[max(free, key=lambda at: step * (wanted[at] - devices[at]))] += step
    layers, first, found = split_evenly(num_layers, num_workers * setting.num_chunks), 0, []
    for own in devices:
        rounds = range(setting.num_chunks)
        stages = [num_workers * turn + first + place for turn in rounds for place in range(own)]
        found.append((own, sum(layers[stage] for stage in stages)))
        first += own
    return tuple(found)


def _quickest(
    workspace: Workspace, setting: BoundSetting, given: GivenChain, splits: Sequence[_Split]
) -> Candidate | None:
    """The quickest of some splits; None where none has an order."""
    timed = [(workspace.time_s(setting, given.sites, split), split) for split in splits]
    best = min(timed, default=None)
    if best is None or not np.isfinite(best[0]):
        return None
    return Candidate(setting=setting, chains=(given.sites,), splits=(best[1],), estimate_s=best[0])
