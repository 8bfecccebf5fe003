"""The quickest of several options, each bound to GPUs: one compiled call for all."""

from typing import NamedTuple

import numpy as np

from agents.hi_ppo.local.binding import BindingWork, quick_binding
from des.base.jit import kernel
from des.devices.rings import Real, Whole, Wires


class BindingWorks(NamedTuple):
    """All options of a case, one per row: numbers of `BindingWork` are (N,), its arrays (N, 8)."""

    tensor: Whole
    data: Whole
    pipeline: Whole
    compute_s: Real
    tensor_steps: Real
    data_bytes: Real
    message_bytes: Real
    fill: Whole


@kernel
def work_at(works: BindingWorks, row: int) -> BindingWork:
    """One of the options."""
    tensor, data, message_bytes = works.tensor[row], works.data[row], works.message_bytes[row]
    return BindingWork(
        tensor,
        data,
        works.pipeline[row],
        works.compute_s[row],
        works.tensor_steps[row],
        message_bytes / tensor,
        2 * (data - 1),
        works.data_bytes[row],
        message_bytes,
        works.fill[row],
    )


class Groups(NamedTuple):
    """Groups of options: the rows of all in a row, and where each group ends, (G,)."""

    rows: Whole
    ends: Whole


class Quickest(NamedTuple):
    """The quickest option of each group, its time [s], both (G,), and its binding, (G, n)."""

    row: Whole
    time_s: Real
    binding: Whole


@kernel
def quickest_bindings(
    works: BindingWorks, groups: Groups, wires: Wires, free: Whole, found: Quickest
) -> None:
    """Write the quickest of each group of options under `quick_binding`; the first of equals."""
    trial, begin = np.empty_like(free), 0
    for group in range(groups.ends.size):
        found.row[group], found.time_s[group] = -1, np.inf
        for row in groups.rows[begin : groups.ends[group]]:
            least_s = found.time_s[group]
            time_s = quick_binding(work_at(works, row), wires, free, trial, least_s)
            if time_s < least_s:
                found.row[group], found.time_s[group] = row, time_s
                found.binding[group] = trial
        begin = groups.ends[group]
