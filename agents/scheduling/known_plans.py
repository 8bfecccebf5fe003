"""The plan that episodes start with, and a few others that are good when links and loads move."""

import numpy as np

from agents.decision.held import held_topology
from agents.scheduling.known_plan import KnownPlan
from agents.scheduling.setting import Setting
from agents.scheduling.step_times import steps_s
from agents.search.ideal_plans import ideal_plans
from agents.search.sketches import quickest_bound
from des import Topology

SCOUT_SEED = 2**62
"""Draws that are looked at for known plans have seeds from here on, those of episodes below."""

_NUM_SCOUTS = 32
"""Networks looked at, each in an epoch of a draw of its own."""


def start_plan(setting: Setting) -> KnownPlan:
    """Search for the quickest plan at base figures.

    Raises
    ------
    InfeasiblePlacementError
        If no plan of the families allowed fits.
    """
    return _found(setting, setting.world.topology.at_start())


def known_plans(setting: Setting, count: int) -> tuple[KnownPlan, ...]:
    """Return at most ``count`` plans: the start plan, then those that add most to those before.

    Plans are searched for on networks that the law leads to. Each taken is the one with which the
    quickest plan known is quickest, in the mean of logarithms over these networks.
    """
    start = start_plan(setting)
    if count <= 1:
        return (start,)
    world = setting.world
    scouted = [
        held_topology(world, SCOUT_SEED + scout, scout % world.num_epochs)
        for scout in range(_NUM_SCOUTS)
    ]
    plans = list(dict.fromkeys([start, *(_found(setting, each) for each in scouted)]))
    networks = setting.networks(scouted)
    rows = np.repeat(np.arange(_NUM_SCOUTS), len(plans))
    tried = plans * _NUM_SCOUTS
    on = [scouted[row] for row in rows.tolist()]
    times = steps_s(setting, networks.rows(rows), tried, on)
    logs = np.log(times).reshape(_NUM_SCOUTS, len(plans))
    chosen = [0]
    while len(chosen) < min(count, len(plans)):
        best = logs[:, chosen].min(axis=1, keepdims=True)
        means = np.minimum(logs, best).mean(axis=0)
        means[chosen] = np.inf
        chosen.append(int(means.argmin()))
    return tuple(plans[each] for each in chosen)


def _found(setting: Setting, topology: Topology) -> KnownPlan:
    if not setting.trainer.is_ideal:
        found = quickest_bound(topology, setting.workload, setting.trainer, setting.corrections)
        return setting.book.of(found.plan)
    best, *_ = ideal_plans(topology, setting.workload, setting.space, setting.corrections)
    return setting.book.of(best.plan)
