"""Lower bound of a step of all plans that a search chooses from.

A device that works for all of a step of ``T`` does ``x_l`` microbatches of layer ``l``, each in
``t_l``, with ``sum x_l t_l <= T``, so ``sum w_l x_l <= T max(w_l / t_l)`` for any weights of
layers. All devices of all sites together do all sequences of all layers, whatever the sites,
layers, shares, copies, schedule and exchanges. Memory, waits at both ends of a pipeline, messages,
sums of gradients and updates only add to it.

A candidate has a bound of its own by the order in which messages pass its devices.
"""

from collections.abc import Sequence

import numpy as np

from agents.search.candidates import Candidate
from agents.search.settings import BoundSetting, together_of
from agents.search.workspace import Workspace

_ROUNDING = 1.0 - 1e-9
"""Part of the bound that is left for sums in another order."""


def work_bound_s(
    workspace: Workspace, settings: Sequence[BoundSetting], *, is_common: bool
) -> float:
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
    passes_s = np.diff([workspace.tables.passes_s(one) for one in own])
    work_s = passes_s[:, :, 0] + np.minimum(
        passes_s[:, :, 1], passes_s[:, :, 2] + passes_s[:, :, 3]
    )
    devices = np.array(
        [workspace.tables.num_devices(one.degrees) * together_of(one) for one in own]
    )
    work_s[devices == 0] = np.inf
    weights = {row.tobytes(): row for row in work_s[0] if np.isfinite(row).all()}
    bounds_s = []
    for weight in weights.values():
        rates = devices * (weight / work_s).max(axis=2)
        total = rates.sum(axis=1) if is_common else rates.max(axis=0).sum(keepdims=True)
        bounds_s.append(workspace.job.num_sequences * weight.sum() / total)
    return float(np.max(bounds_s, axis=0).min()) * _ROUNDING


def any_schedule_s(workspace: Workspace, candidate: Candidate) -> float:
    """Time that a candidate takes at least, whatever the order of its passes. [s]

    Every device does all its passes after the first microbatch has come to it, and, but for weight
    gradients, before the last gradient has gone back. The first copy stands for all.
    """
    setting, split = candidate.setting, zip(candidate.chains[0], candidate.splits[0], strict=True)
    sites = [site for site, (count, _) in split for _ in range(count)]
    places, counts = np.array(sites * setting.num_chunks), np.array(candidate.stage_layers)
    figures, ends, size = workspace.figures(setting), np.cumsum(counts), len(sites)
    own_s = figures.passes_s[places, :, ends] - figures.passes_s[places, :, ends - counts]
    forward_s, whole_s, input_s, weight_s = own_s.T
    back_s, here, there = np.minimum(whole_s, input_s), places[: size - 1], places[1:size]
    ways_s = figures.outer_s.sum(axis=-1)[[here, there], [there, here]]
    down_s, up_s = np.where(here == there, 0.0, ways_s)
    heads_s, tails_s = np.zeros((2, size))
    heads_s[1:] = np.cumsum(forward_s[: size - 1] + down_s)
    tails_s[1:] = np.cumsum(back_s[: size - 1] + up_s)
    each_s = np.array([forward_s + np.minimum(whole_s, input_s + weight_s), forward_s + back_s])
    work_s, sent_s = each_s.reshape(2, -1, size).sum(axis=1) * workspace.num_microbatches(setting)
    return float(np.maximum(heads_s + work_s, heads_s + sent_s + tails_s).max()) * _ROUNDING
