"""Copies of the model on different sites: groups of sites whose pipelines have equal stages."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

import numpy as np

from agents.search.candidates import Candidate
from agents.search.chains import Chain
from agents.search.kernels.pipeline_times import MISFIT
from agents.search.setting_table import SettingTable
from agents.search.settings import BoundSetting, together_of
from agents.search.workspace import Workspace
from des import Workload
from des.job.transformer import WEIGHT_BYTES
from des.plan.plan import split_evenly

_MOST_KEPT = 8
"""Most candidates with copies that are handed on."""

_ROUNDING = 1.0 - 1e-9
"""Part of a bound that is left for sums in another order."""

_LARGE_BYTES = 1e12
"""Size of a message that takes no longer a byte than larger ones."""

_MOST_ORDERED = 3
"""Most sites of a group whose every order is tried."""


def copies_of(workspace: Workspace, table: SettingTable, limit_s: float) -> list[Candidate]:
    """Candidates of two copies or more, the quickest first, whatever the limit if none is below.

    All copies have the same stages; layers are divided evenly over them.
    """
    found: list[Candidate] = []
    best_s = limit_s
    if not table.settings:
        return []
    alike, (fluid_s, exchange_s) = table.of_copies, least_copies_s(workspace, table)
    least_s = np.maximum(fluid_s, exchange_s)
    for at in np.argsort(least_s, kind="stable").tolist():
        if least_s[at] >= best_s:
            break
        for grouping in _groupings(workspace, alike[at][0], (fluid_s[at], exchange_s[at]), best_s):
            for setting in alike[at]:
                candidate = _candidate(workspace, setting, grouping, best_s)
                if candidate is not None:
                    found.append(candidate)
                    best_s = min(best_s, candidate.estimate_s)
    return sorted(found, key=lambda one: one.estimate_s)[:_MOST_KEPT]


def pace_bytes(workload: Workload) -> float:
    """Size of the messages at whose pace exchanges are reckoned: those of a pipeline, if any."""
    return workload.message_bytes or _LARGE_BYTES


def least_copies_s(workspace: Workspace, table: SettingTable) -> tuple[np.ndarray, np.ndarray]:
    """Times that copies of each group of settings take at least, for passes and for sums. [s]

    Passes if all devices of all sites were always busy, sums of two copies over the best link.
    """
    first = [own[0] for own in table.of_copies]

    def work_out() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        whole_s = workspace.tables.fluid_s(first)
        with np.errstate(divide="ignore"):
            fluid_s = 1.0 / (1.0 / whole_s).sum(axis=1)
        workloads = [one.workload(workspace.job) for one in first]
        rounds = [_bytes_round(workspace, one) for one in first]
        return fluid_s, np.array(rounds), np.array(list(map(pace_bytes, workloads)))

    key = "copies", workspace.tables.sites_number, table
    fluid_s, rounds, message_bytes = workspace.shared.part(key, work_out)
    sizes, size_of = np.unique(message_bytes, return_inverse=True)
    quickest_s = np.array([least_way_s(workspace, size) for size in sizes.tolist()])[size_of]
    return fluid_s, 0.5 * rounds * quickest_s / message_bytes


def least_way_s(workspace: Workspace, num_bytes: float) -> float:
    """Transfer of a message on the quickest way between two sites; infinite if none. [s]"""
    ways_s = workspace.tables.ways_s(num_bytes)[..., 0]
    apart = ~np.eye(len(ways_s), dtype=bool)
    return float(np.min(ways_s, where=apart, initial=np.inf))


def _bytes_round(workspace: Workspace, setting: BoundSetting) -> float:
    """Bytes that go round a ring of copies: gradients twice, or gradients and then weights."""
    workload = setting.workload(workspace.job)
    each = WEIGHT_BYTES if setting.degrees.sharding == "optimiser" else workload.gradient_bytes
    return float((workload.gradient_bytes + each) * workload.sums_before.num_parameters[-1])


def ring_exchange_s(workspace: Workspace, setting: BoundSetting, groups: Sequence[Chain]) -> float:
    """Time that summing up all gradients over the slowest link of the ring of copies takes. [s]

    Copies that share the optimiser's state scatter gradients and gather weights, each once round.
    """
    return around_ring_s(workspace, setting, groups, _bytes_round(workspace, setting))


def around_ring_s(
    workspace: Workspace, setting: BoundSetting, groups: Sequence[Chain], num_bytes: float
) -> float:
    """Time of an exchange over the slowest link of the ring of copies. [s]

    ``num_bytes`` would go round a ring without end, there and back; of K copies (K - 1) / K do.
    """
    each_bytes = pace_bytes(setting.workload(workspace.job))
    parts = (len(groups) - 1) / len(groups)
    ways_s = workspace.tables.ways_s(each_bytes)
    slowest = 0.0
    for here, there in zip(groups, (*groups[1:], groups[0]), strict=True):
        quickest_s = min(float(ways_s[a, b, 0]) for a in here for b in there)
        slowest = max(slowest, quickest_s / each_bytes)
    return parts * num_bytes * slowest


def along_tree_s(
    workspace: Workspace, setting: BoundSetting, groups: Sequence[Chain], num_bytes: float
) -> float:
    """Time of an exchange over the slowest link of the widest tree of copies. [s]

    All of ``num_bytes`` go up and down each link, layer by layer.
    """
    message_bytes = pace_bytes(setting.workload(workspace.job))
    ways_s = workspace.tables.ways_s(message_bytes)[..., 0]
    both_s = np.maximum(ways_s, ways_s.T)
    nearest_s = np.array([both_s[np.ix_(groups[0], group)].min() for group in groups])
    left, slowest_s = set(range(1, len(groups))), 0.0
    while left:
        left.remove(nearest := min(left, key=lambda at: float(nearest_s[at])))
        slowest_s = max(slowest_s, float(nearest_s[nearest]))
        own_s = [both_s[np.ix_(groups[nearest], group)].min() for group in groups]
        nearest_s = np.minimum(nearest_s, own_s)
    return num_bytes * slowest_s / message_bytes


class _Grouping(NamedTuple):
    """Groups of sites, a copy on each: stages of a copy, and least time with sums over links."""

    num_workers: int
    groups: tuple[Chain, ...]
    least_s: float


def _groupings(
    workspace: Workspace, setting: BoundSetting, least: tuple[float, float], limit_s: float
) -> Iterator[_Grouping]:
    """Groups of sites with equally many stages each, as many groups as divide the sequences.

    Those are left out that take longer than the limit even if the ring of copies had two of them
    and the best link alone. ``least`` are times for passes and sums of `least_copies_s`.

    Sums begin when a stage has done its last microbatch, so no sooner than the work of the stage
    with fewest layers, if all devices were always busy.
    """
    num_layers = workspace.job.layer_count
    together = together_of(setting)
    num_devices = workspace.tables.num_devices(setting.degrees)
    (fluid_s, exchange_s), most = least, num_layers // setting.num_chunks
    for num_workers in sorted({count for count in num_devices.tolist() if 0 < count <= most}):
        num_stages = num_workers * setting.num_chunks
        part = num_layers // num_stages * num_stages / num_layers
        if (part * fluid_s + exchange_s) * _ROUNDING >= limit_s:
            continue
        groups: list[Chain] = [(int(site),) for site in np.flatnonzero(num_devices >= num_workers)]
        ways_s = workspace.tables.ways_s(setting.workload(workspace.job).message_bytes)
        groups += _joined(num_devices, num_workers, ways_s)
        for count in range(len(groups), 1, -1):
            if workspace.job.num_sequences % (together * count) == 0:
                own = tuple(groups[:count])
                summed_s = ring_exchange_s(workspace, setting, own)
                if np.isfinite(summed_s):
                    yield _Grouping(num_workers, own, part * fluid_s + summed_s)
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
    workspace: Workspace, setting: BoundSetting, grouping: _Grouping, limit_s: float
) -> Candidate | None:
    """The copies with their stages; None where they take longer than the limit or do not fit."""
    if grouping.least_s >= limit_s:
        return None
    setting = replace(setting, num_replicas=len(grouping.groups))
    chains, splits, made_s, longest_s = [], [], np.zeros(0), 0.0
    for group in grouping.groups:
        orders = permutations(group) if len(group) <= _MOST_ORDERED else [group]
        timed = []
        for order in orders:
            split = _even_split(workspace, setting, order, grouping.num_workers)
            own_s, own_made_s = workspace.made_s(setting, order, split)
            timed.append((own_s, order, split, own_made_s))
        own_s, order, split, own_made_s = min(timed, key=lambda one: one[:3])
        if own_s >= MISFIT:
            return None
        longest_s = max(longest_s, own_s)
        made_s = np.maximum(made_s, own_made_s) if len(made_s) else own_made_s
        chains.append(tuple(order))
        splits.append(split)
    estimate_s = _sum_up_s(workspace, setting, chains, splits, (made_s, longest_s))
    if estimate_s >= limit_s:
        return None
    return Candidate(
        setting=setting, chains=tuple(chains), splits=tuple(splits), estimate_s=estimate_s
    )


def _sum_up_s(
    workspace: Workspace,
    setting: BoundSetting,
    chains: Sequence[Chain],
    splits: Sequence[tuple[tuple[int, int], ...]],
    made: tuple[np.ndarray, float],
) -> float:
    """End of an iteration: gradients of a stage go round once all copies of it have made them. [s]

    Every link of the ring carries one stage after the other, in the order in which they are made;
    copies that share the optimiser's state gather all weights after their updates.

    Parameters
    ----------
    made
        When the last gradients of each stage are made, and when the slowest copy has updated.
    """
    workload, (made_s, longest_s) = setting.workload(workspace.job), made
    message_bytes = pace_bytes(workload)
    ways_s = workspace.tables.ways_s(message_bytes)
    num_copies, num_workers = len(chains), sum(devices for devices, _ in splits[0])
    layers = split_evenly(workspace.job.layer_count, num_workers * setting.num_chunks)
    ends = np.cumsum(layers)
    before = np.array(workload.sums_before.num_parameters, float)
    parameters = before[ends] - before[ends - layers]
    sites = [
        [site for site, (devices, _) in zip(chain, split, strict=True) for _ in range(devices)]
        for chain, split in zip(chains, splits, strict=True)
    ]
    is_sharded = setting.degrees.sharding == "optimiser"
    part_bytes = parameters / num_copies
    rounds = (num_copies - 1) * (1 if is_sharded else 2)
    free_s: dict[tuple[int, int], float] = {}
    gathered_s: dict[tuple[int, int], float] = {}
    end_s = 0.0
    for stage in np.argsort(made_s, kind="stable").tolist():
        worker = stage % num_workers
        ring = [own[worker] for own in sites]
        hops = list(zip(ring, (*ring[1:], ring[0]), strict=True))
        begin_s = float(made_s[stage])
        for hop in hops:
            each_s = float(ways_s[hop][0]) / message_bytes * float(part_bytes[stage])
            sent_s = rounds * each_s * workload.gradient_bytes
            free_s[hop] = max(free_s.get(hop, 0.0), begin_s) + sent_s
            end_s = max(end_s, free_s[hop] + rounds * float(ways_s[hop][1]))
            gathered_s[hop] = gathered_s.get(hop, 0.0) + (num_copies - 1) * each_s * WEIGHT_BYTES
    update_s = longest_s - float(made_s.max())
    end_s = max(longest_s, end_s + update_s)
    if not is_sharded:
        return end_s
    slowest_s = max(float(ways_s[hop][1]) for hop in gathered_s)
    return end_s + max(gathered_s.values()) + (num_copies - 1) * slowest_s


def _even_split(
    workspace: Workspace, setting: BoundSetting, chain: Chain, num_workers: int
) -> tuple[tuple[int, int], ...]:
    """Devices of each site of a chain, as many as there are until all are found, and layers."""
    num_devices = workspace.tables.num_devices(setting.degrees)
    layers = split_evenly(workspace.job.layer_count, num_workers * setting.num_chunks)
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
