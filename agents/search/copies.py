"""Copies of the model on different sites: groups of sites whose pipelines have equal stages."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np

from agents.search.candidates import Candidate
from agents.search.chains import Chain
from agents.search.desk import SearchDesk
from agents.search.kernels.pipeline_times import MISFIT
from agents.search.settings import BoundSetting
from des import Workload
from des.job.transformer import WEIGHT_BYTES
from des.plan.plan import split_evenly

_MOST_KEPT = 8
"""Most candidates with copies that are handed on."""

_MOST_ORDERED = 3
"""Most sites of a group whose every order is tried."""


def copies_of(
    desk: SearchDesk, settings: Sequence[BoundSetting], limit_s: float
) -> list[Candidate]:
    """Candidates of two copies or more, the quickest first, whatever the limit if none is below.

    All copies have the same stages; layers are divided evenly over them.
    """
    found: list[Candidate] = []
    best_s = limit_s
    for setting in settings:
        if least_exchange_s(desk, setting) >= best_s:
            continue
        figures = desk.figures(setting)
        for num_workers, groups in _groupings(figures.num_devices, setting, desk):
            own = _candidate(desk, setting, num_workers, groups, best_s)
            if own is not None:
                found.append(own)
                best_s = min(best_s, own.estimate_s)
    return sorted(found, key=lambda one: one.estimate_s)[:_MOST_KEPT]


def least_exchange_s(desk: SearchDesk, setting: BoundSetting) -> float:
    """Time that two copies need at least to sum up over the best link. [s]"""
    outer_s = desk.figures(setting).outer_s[..., 0]
    apart = ~np.eye(len(outer_s), dtype=bool)
    quickest_s = float(np.min(outer_s, where=apart, initial=np.inf))
    workload = setting.workload(desk.job)
    return 0.5 * _bytes_round(setting, workload) * quickest_s / workload.message_bytes


def _bytes_round(setting: BoundSetting, workload: Workload) -> float:
    """Bytes that go round a ring of copies: gradients twice, or gradients and then weights."""
    each = WEIGHT_BYTES if setting.degrees.sharding == "optimiser" else workload.gradient_bytes
    parameters = workload.sums_before.num_parameters[-1]
    return float((workload.gradient_bytes + each) * parameters)


def ring_exchange_s(desk: SearchDesk, setting: BoundSetting, groups: Sequence[Chain]) -> float:
    """Time that summing up all gradients over the slowest link of the ring of copies takes. [s]

    Copies that share the optimiser's state scatter gradients and gather weights, each once round.
    """
    return around_ring_s(desk, setting, groups, _bytes_round(setting, setting.workload(desk.job)))


def around_ring_s(
    desk: SearchDesk, setting: BoundSetting, groups: Sequence[Chain], num_bytes: float
) -> float:
    """Time of an exchange over the slowest link of the ring of copies. [s]

    ``num_bytes`` would go round a ring without end, there and back; of K copies (K - 1) / K do.
    """
    workload = setting.workload(desk.job)
    parts = (len(groups) - 1) / len(groups)
    figures = desk.figures(setting)
    slowest = 0.0
    for here, there in zip(groups, (*groups[1:], groups[0]), strict=True):
        ways_s = [figures.outer_s[a, b, 0] for a in here for b in there]
        slowest = max(slowest, min(ways_s) / workload.message_bytes)
    return parts * num_bytes * slowest


def _groupings(
    num_devices: np.ndarray, setting: BoundSetting, desk: SearchDesk
) -> Iterator[tuple[int, tuple[Chain, ...]]]:
    """Stages of a copy, and groups of sites with that many each, as many groups as divide."""
    num_layers = desk.job.layer_count // setting.num_chunks
    together = setting.microbatch_size * setting.degrees.data
    for num_workers in sorted({int(count) for count in num_devices if 0 < count <= num_layers}):
        groups: list[Chain] = [(int(site),) for site in np.flatnonzero(num_devices >= num_workers)]
        groups += _joined(num_devices, num_workers, desk.figures(setting).outer_s)
        for count in range(len(groups), 1, -1):
            if desk.job.num_sequences % (together * count) == 0:
                yield num_workers, tuple(groups[:count])
                break


def _joined(num_devices: np.ndarray, num_workers: int, outer_s: np.ndarray) -> list[Chain]:
    """Groups of sites that are too small alone, near ones together."""
    left = [int(site) for site in np.flatnonzero((num_devices > 0) & (num_devices < num_workers))]
    groups: list[Chain] = []
    while left:
        chain: Chain = (left.pop(0),)
        count = int(num_devices[chain[0]])
        while count < num_workers and left:
            nearest = min(left, key=lambda site: (outer_s[chain[-1], site].sum(), site))
            left.remove(nearest)
            chain, count = (*chain, nearest), count + int(num_devices[nearest])
        if count >= num_workers:
            groups.append(chain)
    return groups


def _candidate(
    desk: SearchDesk,
    setting: BoundSetting,
    num_workers: int,
    groups: Sequence[Chain],
    limit_s: float,
) -> Candidate | None:
    """The copies with their stages; None where they take longer than the limit or do not fit."""
    setting = replace(setting, num_replicas=len(groups))
    summed_s = ring_exchange_s(desk, setting, groups)
    if summed_s >= limit_s or not np.isfinite(summed_s):
        return None
    chains, splits, longest_s = [], [], 0.0
    for group in groups:
        orders = permutations(group) if len(group) <= _MOST_ORDERED else [group]
        timed = []
        for order in orders:
            split = _even_split(desk, setting, order, num_workers)
            timed.append((desk.time_s(setting, order, split), order, split))
        own_s, order, split = min(timed)
        longest_s = max(longest_s, own_s)
        chains.append(tuple(order))
        splits.append(split)
    if longest_s >= MISFIT:
        return None
    return Candidate(
        setting=setting,
        chains=tuple(chains),
        splits=tuple(splits),
        estimate_s=longest_s + summed_s,
    )


def _even_split(
    desk: SearchDesk, setting: BoundSetting, chain: Chain, num_workers: int
) -> tuple[tuple[int, int], ...]:
    """Devices of each site of a chain, as many as there are until all are found, and layers."""
    num_devices = desk.figures(setting).num_devices
    layers = split_evenly(desk.job.layer_count, num_workers * setting.num_chunks)
    found, first = [], 0
    for site in chain:
        count = min(int(num_devices[site]), num_workers - first)
        if count == 0:
            continue
        own = sum(
            layers[chunk * num_workers + first + device]
            for chunk in range(setting.num_chunks)
            for device in range(count)
        )
        found.append((count, own))
        first += count
    return tuple(found)
