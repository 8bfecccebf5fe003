"""Options bound to GPUs by compiled code: the quickest of some, and the best local plan."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from agents.hi_ppo.local.best_binding import best_binding
from agents.hi_ppo.local.binding import BindingWork, iteration_s, quick_binding
from agents.hi_ppo.local.case import MOST_LOCAL_GPUS, LocalCase
from agents.hi_ppo.local.joined_gpus import card_shares
from agents.hi_ppo.local.option_rows import LocalOption
from agents.hi_ppo.local.options import Options, options_of, tensor_steps
from agents.hi_ppo.local.quickest import (
    BindingWorks,
    Groups,
    Quickest,
    quickest_bindings,
    work_at,
)
from agents.hi_ppo.local.server_binding import (
    listed_binding,
    quickest_on_servers,
    servers_binding,
)
from agents.hi_ppo.local.server_times import WaysOut, servers_iteration_s
from des.costs.stage_times import TENSOR_ALL_REDUCES_PER_PASS
from des.devices.rings import Whole, Wires


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPlan:
    """An option bound to GPUs, with its time.

    ``binding`` has a GPU for each place, see `agents.hi_ppo.local.binding`.
    """

    option: LocalOption
    binding: tuple[int, ...]
    seconds_per_sequence: float


def works_of(case: LocalCase, options: Options) -> BindingWorks:
    """Return all options of a case in numbers for the compiled code.

    The sums in tensor groups over several servers are those of any binding: they are in the work.
    """
    rows, steps, compute_s = (
        options.rows,
        tensor_steps(options).astype(np.float64),
        options.compute_s,
    )
    if case.num_servers > 1 and (rows.tensor > case.gpus.num_gpus).any():
        is_wide = (rows.tensor > case.gpus.num_gpus)[:, None]
        compute_s = np.where(is_wide, compute_s + _wide_sums_s(case, options), compute_s)
        steps = np.where(is_wide, 0.0, steps)
    return BindingWorks(
        tensor=rows.tensor,
        data=rows.data,
        pipeline=rows.pipeline,
        compute_s=compute_s,
        tensor_steps=steps,
        data_bytes=options.gradient_bytes / rows.data[:, None],
        message_bytes=options.message_bytes,
        fill=options.num_microbatches - 1 + case.stages_before + case.stages_behind,
    )


def _wide_sums_s(case: LocalCase, options: Options) -> np.ndarray:
    """Sums in tensor groups over whole servers that a microbatch takes, both ways (N, D). [s]

    By `des.costs.node_collectives.group_ring_all_reduce_s`, with the ring of all GPUs of a server.
    """
    wires, ways, ranks = wires_of(case), ways_out_of(case), options.rows.tensor
    num_servers = np.maximum(1, ranks // ways.gpus_per_server)
    cards = min(ways.gpus_per_server, ways.num_cards)
    out_bytes_per_s = cards * ways.card_bytes_per_s * ways.share[-1]
    pace = min(float(wires.ring_bandwidth_bytes_per_s[-1]), out_bytes_per_s)
    latency_s = (ranks - num_servers) * wires.ring_latency_s[-1]
    latency_s = latency_s + (num_servers - 1) * ways.latency_s
    half_s = latency_s + (ranks - 1) * options.message_bytes / ranks / pace
    in_layer_s = 2 * 2 * TENSOR_ALL_REDUCES_PER_PASS * half_s
    return np.asarray(in_layer_s[:, None] * options.num_layers)


def ways_out_of(case: LocalCase) -> WaysOut:
    """Network cards of the servers of a case, with calibrated figures.

    Cards that a server does not tell one by one, or not all of the domain's, are shared evenly. Of
    GPUs without ``nodes`` no message leaves the server.
    """
    nodes, factors = case.domain.nodes, case.corrections
    if nodes is None:
        return _no_ways(case.gpus.num_gpus)
    return WaysOut(
        gpus_per_server=nodes.gpus_per_node,
        num_cards=nodes.nics_per_node,
        card_bytes_per_s=nodes.nic_bandwidth_bytes_per_s * factors.intra_bandwidth_factor,
        latency_s=nodes.nic_latency_s * factors.intra_latency_factor,
        share=card_shares(nodes),
    )


@lru_cache(maxsize=MOST_LOCAL_GPUS)
def _no_ways(num_gpus: int) -> WaysOut:
    return WaysOut(num_gpus, 1, 1.0, 0.0, np.ones(1 << num_gpus))


def work_of(case: LocalCase, options: Options, chosen: Iterable[int]) -> list[BindingWork]:
    """Return some of the options of a case in numbers."""
    works = works_of(case, options)
    return [work_at(works, row) for row in chosen]


def wires_of(case: LocalCase) -> Wires:
    """Wires between the GPUs of a case, with calibrated figures."""
    wires, factors = case.gpus.wires, case.corrections
    bandwidth, latency = factors.intra_bandwidth_factor, factors.intra_latency_factor
    if bandwidth == latency == 1.0:
        return wires
    return Wires(
        wires.bandwidth_bytes_per_s * bandwidth,
        wires.latency_s * latency,
        wires.ring_bandwidth_bytes_per_s * bandwidth,
        wires.ring_latency_s * latency,
    )


def quickly_bound(case: LocalCase, options: Options, chosen: Sequence[int]) -> LocalPlan:
    """Bind some of the options by a quick search and return the quickest, the first of equals."""
    (plan,) = each_quickly_bound(case, options, works_of(case, options), [chosen])
    return plan


def each_quickly_bound(
    case: LocalCase, options: Options, works: BindingWorks, chosen: Sequence[Sequence[int]]
) -> list[LocalPlan]:
    """Return the `quickly_bound` plan of each of several groups of options; works: `works_of`."""
    wires, free, count = wires_of(case), np.array(case.free_gpus), len(chosen)
    groups = [np.asarray(each, dtype=np.int64) for each in chosen]
    found = Quickest(
        row=np.empty(count, dtype=np.int64),
        time_s=np.empty(count),
        binding=np.empty((count, len(free)), dtype=free.dtype),
    )
    if case.num_servers == 1:
        ends = np.cumsum([len(each) for each in groups])
        quickest_bindings(works, Groups(np.concatenate(groups), ends), wires, free, found)
    else:
        ways = ways_out_of(case)
        for place, rows in enumerate(groups):
            found.row[place], found.time_s[place] = quickest_on_servers(
                works, rows, wires, ways, found.binding[place]
            )
    return [
        _plan(case, options.rows.options[row], binding, time_s)
        for row, time_s, binding in zip(
            found.row.tolist(), found.time_s.tolist(), found.binding, strict=True
        )
    ]


def in_order(case: LocalCase, options: Options, row: int) -> LocalPlan:
    """Bind an option to GPUs in the order of their numbers."""
    (work,), wires = work_of(case, options, [row]), wires_of(case)
    if case.num_servers == 1:
        binding = np.array(case.free_gpus)
        return _plan(case, options.rows.options[row], binding, iteration_s(work, wires, binding))
    binding = np.arange(len(case.free_gpus)) % case.gpus.num_gpus
    time_s = servers_iteration_s(work, wires, ways_out_of(case), binding)
    return _plan(case, options.rows.options[row], binding, time_s)


def quick_times_s(case: LocalCase, options: Options, chosen: Iterable[int]) -> np.ndarray:
    """Time of an iteration of some of the options, each bound by a quick search (N,). [s]"""
    binding = np.empty(len(case.free_gpus), dtype=np.int64)
    quick = _search_of(case).quick
    return np.array([quick(work, binding) for work in work_of(case, options, chosen)])


def exhaustive(case: LocalCase, options: Options | None = None) -> LocalPlan:
    """Return the best of all options with all bindings: the optimal local plan.

    On several servers bindings are those of `listed_binding`: all of them where they are few, else
    all orders of a server that the servers take alike, and swaps in each apart; the best known.

    Raises
    ------
    InfeasiblePlacementError
        If none fits into memory.
    """
    options = options_of(case) if options is None else options
    rows = range(len(options))
    works, search = work_of(case, options, rows), _search_of(case)
    bindings = np.empty((len(options), len(case.free_gpus)), dtype=np.int64)
    quick_s = [search.quick(works[row], bindings[row]) for row in rows]
    best = int(np.argmin(quick_s))
    best_s, kept, binding = quick_s[best], bindings[best], np.empty_like(bindings[0])
    for row in np.argsort(quick_s, kind="stable").tolist():
        found_s = search.best(works[row], best_s, binding)
        if found_s < best_s:
            best, best_s, kept = row, found_s, binding.copy()
    return _plan(case, options.rows.options[best], kept, best_s)


class _Search(NamedTuple):
    """Quick search for a binding of an option, and one for the best below a time."""

    quick: Callable[[BindingWork, Whole], float]
    best: Callable[[BindingWork, float, Whole], float]


def _search_of(case: LocalCase) -> _Search:
    wires = wires_of(case)
    if case.num_servers == 1:
        free = np.array(case.gpus.free)
        return _Search(
            lambda work, binding: quick_binding(work, wires, free, binding),
            lambda work, limit_s, binding: best_binding(work, wires, free, limit_s, binding),
        )
    ways = ways_out_of(case)
    return _Search(
        lambda work, binding: servers_binding(work, wires, ways, binding, np.inf),
        lambda work, limit_s, binding: listed_binding(work, wires, ways, limit_s, binding),
    )


def _plan(case: LocalCase, option: LocalOption, binding: Whole, iteration_s: float) -> LocalPlan:
    places = np.arange(option.parallelism.num_gpus)
    gpus = binding[: len(places)]
    if case.num_servers > 1:
        gpus = gpus + places // case.gpus.num_gpus * case.gpus.num_gpus
    return LocalPlan(
        option=option,
        binding=tuple(gpus.tolist()),
        seconds_per_sequence=iteration_s / case.job.num_sequences,
    )
