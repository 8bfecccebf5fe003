"""Costs of changes of plan, many at once, each on a network of its own."""

from collections.abc import Sequence

import numpy as np

from agents.scheduling.kernels.change_costs import change_costs
from agents.scheduling.known_plan import KnownPlan
from agents.scheduling.setting import Setting
from des.compiled.many.each import NetworkFigures
from des.compiled.many.layout import Real, Whole
from des.costs.outer_state import INNER_MOMENTS_BYTES, OUTER_STATE_BYTES


def change_figures(
    setting: Setting,
    networks: NetworkFigures,
    plans: Sequence[KnownPlan],
    old: Whole,
    new: Whole,
) -> Real:
    """Times [s] as `des.migration_s` has them, and bytes, of N changes, (2, N).

    Parameters
    ----------
    networks
        One for each change.
    plans
        Different plans.
    old, new
        Positions among them before and after each change, (N,).
    """
    costs = np.zeros((2, len(old)))
    rows = np.flatnonzero(old != new)
    if len(rows) == 0:
        return costs
    if setting.world.replacement.pays_bytes:
        costs[:, rows] = _sent(setting, networks.rows(rows), plans, old[rows], new[rows])
    costs[0, rows] += setting.world.replacement.restart_s
    return costs


def _sent(
    setting: Setting,
    networks: NetworkFigures,
    plans: Sequence[KnownPlan],
    old: Whole,
    new: Whole,
) -> Real:
    """Times until the last layers have arrived [s], and bytes sent, (2, N)."""
    first = np.cumsum([0, *(len(one.layers) for one in plans)])
    is_outer = np.array([one.has_outer_state for one in plans])
    is_copied = np.array([len(one.layers) > 1 for one in plans])
    costs, size = np.empty((2, len(old))), networks.rate_flops_per_s.shape[1]
    change_costs(
        np.concatenate([one.layers for one in plans]),
        np.stack([first[old], first[old + 1], first[new], first[new + 1]], axis=1),
        setting.workload.state_bytes + OUTER_STATE_BYTES * (is_outer[old] & is_outer[new]),
        is_outer[old] & is_copied[new] & ~is_outer[new],
        float(INNER_MOMENTS_BYTES),
        np.array(setting.workload.num_parameters, dtype=np.float64),
        networks.goodput_bytes_per_s,
        networks.latency_s,
        float(setting.corrections.message_overhead_s),
        np.empty((3, size, size)),
        costs,
    )
    return costs
