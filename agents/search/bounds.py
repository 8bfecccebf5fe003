"""Lower bound of a step of all plans that a search chooses from.

A device that works for all of a step of ``T`` does ``x_l`` microbatches of layer ``l``, each in
``t_l``, with ``sum x_l t_l <= T``, so ``sum w_l x_l <= T max(w_l / t_l)`` for any weights of
layers. All devices of all sites together do all sequences of all layers, whatever the sites,
layers, shares, copies, schedule and exchanges. Memory, waits at both ends of a pipeline, messages,
sums of gradients and updates only add to it.
"""

from collections.abc import Sequence

import numpy as np

from agents.search.desk import SearchDesk
from agents.search.settings import BoundSetting, together_of

_ROUNDING = 1.0 - 1e-9
"""Part of the bound that is left for sums in another order."""


def work_bound_s(desk: SearchDesk, settings: Sequence[BoundSetting], *, is_common: bool) -> float:
    """Time below which no step is of any plan with some settings. [s]

    Parameters
    ----------
    settings
        At least one that a site has a stage of.
    is_common
        Whether all sites have the same setting; else each may have the one that is best there.
    """
    distinct = {(one.degrees, one.microbatch_size, one.recomputation): one for one in settings}
    own = list(distinct.values())
    passes_s = np.diff([desk.tables.passes_s(one) for one in own])
    work_s = passes_s[:, :, 0] + np.minimum(
        passes_s[:, :, 1], passes_s[:, :, 2] + passes_s[:, :, 3]
    )
    devices = np.array([desk.tables.num_devices(one.degrees) * together_of(one) for one in own])
    work_s[devices == 0] = np.inf
    weights = {row.tobytes(): row for row in work_s[0] if np.isfinite(row).all()}
    bounds_s = []
    for weight in weights.values():
        rates = devices * (weight / work_s).max(axis=2)
        total = rates.sum(axis=1) if is_common else rates.max(axis=0).sum(keepdims=True)
        bounds_s.append(desk.job.num_sequences * weight.sum() / total)
    return float(np.max(bounds_s, axis=0).min()) * _ROUNDING
