"""Costs of changes of plan, many at once, each on a network of its own."""

from collections.abc import Sequence

import numpy as np

from agents.judge.change_costs import MoveRates
from agents.judge.copy_moves import costs_of_changes, held_layers
from agents.scheduling.known_plan import KnownPlan
from agents.scheduling.setting import Setting
from des.compiled.many.each import NetworkFigures
from des.compiled.many.layout import Real, Whole


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
        held = held_layers([one.plan for one in plans], [one.layers for one in plans])
        rates = MoveRates(
            networks.goodput_bytes_per_s,
            networks.latency_s,
            float(setting.corrections.message_overhead_s),
        )
        changes = np.stack([old, new])[:, rows]
        costs[:, rows] = costs_of_changes(setting.workload, held, changes, rates, rows)
    costs[0, rows] += setting.world.replacement.restart_s
    return costs
