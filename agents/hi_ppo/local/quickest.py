"""The quickest of several options, each bound to GPUs: one call of compiled code for them all."""

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


@kernel
def quickest_binding(
    works: BindingWorks, rows: Whole, wires: Wires, free: Whole, binding: Whole
) -> tuple[int, float]:
    """Write the best of the `quick_binding` of some options; return which one, and its time. [s]

    The first of equals counts.
    """
    best, best_s, trial = -1, np.inf, np.empty_like(free)
    for row in rows:
        found_s = quick_binding(work_at(works, row), wires, free, trial, best_s)
        if found_s < best_s:
            best, best_s = row, found_s
            binding[:] = trial
    return best, best_s
