"""All pipelines of a setting over an order of sites: devices and layers of each site."""

from typing import NamedTuple

import numpy as np

from agents.search.kernels.layouts import num_held
from agents.search.kernels.pipeline_times import staged_iteration_s
from agents.search.kernels.records import Room, SiteFigures, TimingRules
from des.base.jit import lean_kernel
from scenarios.study.enumeration.bounds import Least, interleaved_bound_s, plain_bound_s


class PipelineCase(NamedTuple):
    """Figures of a setting, room to simulate in, and what is written.

    ``found`` are devices and layers of each site of the best pipeline, (sites, 2); to ``counts``
    are added pipelines whose bound is taken, and that are simulated.
    """

    figures: SiteFigures
    least: Least
    room: Room
    found: np.ndarray
    counts: np.ndarray


@lean_kernel
def best_pipeline_s(
    case: PipelineCase,
    rules: TimingRules,
    chain: np.ndarray,
    limit_s: float,
    scratch: np.ndarray,
) -> float:
    """Time of the quickest pipeline below a limit, the limit itself if there is none. [s]

    Goes through every number of devices of each site, and every number of layers.

    Parameters
    ----------
    scratch
        Devices, layers and most layers of each site, (sites, 3).
    """
    scratch[: len(chain), 0] = 1
    while True:
        if _caps(case, rules, chain, scratch, limit_s):
            limit_s = _best_layers_s(case, rules, chain, limit_s, scratch)
        at = 0
        while at < len(chain):
            scratch[at, 0] += 1
            if scratch[at, 0] <= case.figures.num_devices[chain[at]]:
                break
            scratch[at, 0] = 1
            at += 1
        if at == len(chain):
            return limit_s


@lean_kernel
def _caps(
    case: PipelineCase, rules: TimingRules, chain: np.ndarray, scratch: np.ndarray, limit_s: float
) -> bool:
    """Write the most layers of each site; False where the model does not fit into them.

    The first device of a site has most layers and holds most activations. It does all microbatches
    within the limit, and has room for its layers and for activations of its smallest chunk.
    """
    num_layers, chunks = case.figures.passes_s.shape[2] - 1, rules.num_chunks
    total = worker = devices = 0
    for at in range(len(chain)):
        devices += scratch[at, 0]
        if case.figures.num_devices[chain[at]] == 0:
            return False
    if devices * chunks > num_layers or (chunks > 1 and devices == 1):
        return False
    for at in range(len(chain)):
        site, held = chain[at], num_held(rules, devices, worker)
        each_s = case.least.passes_s[site, 0] + case.least.passes_s[site, 1]
        count = min(int(limit_s / (rules.num_microbatches * each_s)), num_layers)
        while count >= chunks:
            needed = held * case.least.kept_bytes[site, count // chunks]
            if needed + case.least.state_bytes[site, count] <= case.figures.room_bytes[site]:
                break
            count -= 1
        if count < chunks:
            return False
        scratch[at, 2] = scratch[at, 0] * count
        total += scratch[at, 2]
        worker += scratch[at, 0]
    return bool(total >= num_layers)


@lean_kernel
def _best_layers_s(
    case: PipelineCase,
    rules: TimingRules,
    chain: np.ndarray,
    limit_s: float,
    scratch: np.ndarray,
) -> float:
    """Go through all layers of the sites whose devices and caps are written down."""
    num_layers, chunks, count = case.figures.passes_s.shape[2] - 1, rules.num_chunks, len(chain)
    after_caps = after_least = 0
    for at in range(1, count):
        after_caps += scratch[at, 2]
        after_least += scratch[at, 0] * chunks
    first_low = max(scratch[0, 0] * chunks, num_layers - after_caps)
    for first in range(first_low, min(scratch[0, 2], num_layers - after_least) + 1):
        scratch[0, 1] = first
        if count < 3:
            scratch[count - 1, 1] = num_layers - (first if count == 2 else 0)
            limit_s = _try(case, rules, chain, limit_s, scratch)
            continue
        left = num_layers - first
        second_low = max(scratch[1, 0] * chunks, left - scratch[2, 2])
        for second in range(second_low, min(scratch[1, 2], left - scratch[2, 0] * chunks) + 1):
            scratch[1, 1], scratch[2, 1] = second, left - second
            limit_s = _try(case, rules, chain, limit_s, scratch)
    return limit_s


@lean_kernel
def _try(
    case: PipelineCase,
    rules: TimingRules,
    chain: np.ndarray,
    limit_s: float,
    scratch: np.ndarray,
) -> float:
    """Simulate a pipeline unless its bound rules it out; returns the time to be beaten. [s]"""
    case.counts[0] += 1
    if rules.num_chunks == 1:
        bound_s = plain_bound_s(case.figures, rules, chain, scratch)
    else:
        bound_s = interleaved_bound_s(case.figures, case.least, rules, chain, scratch)
    if bound_s >= limit_s:
        return limit_s
    case.counts[1] += 1
    split, room = scratch[: len(chain), :2], case.room
    found_s: float = staged_iteration_s(
        case.figures, rules, chain, split, room.no_counts, room, np.inf
    )
    if found_s < limit_s:
        for at in range(len(chain)):
            case.found[at, 0], case.found[at, 1] = scratch[at, 0], scratch[at, 1]
        return found_s
    return limit_s
