"""Draws of worlds for the scheduling task, and the plans known in them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.decision.frozen_network import freeze_topologies, freeze_topology
from agents.scheduling.setting import KnownPlan, Setting, steps_s
from agents.search.ideal_plans import ideal_plans
from agents.search.sketches import quickest_bound
from des import Topology
from des.compiled.many.each import NetworkFigures
from des.compiled.many.layout import Real, Whole

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
        freeze_topology(world, SCOUT_SEED + scout, scout % world.num_epochs)
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


_MOST_DRAWS = 1024
"""Draws that are kept."""

_CHANGED_BY = 1e-9
"""Least change of a logarithm that counts."""


@dataclass(frozen=True, kw_only=True)
class DrawnCourse:
    """One course of the world over E epochs.

    Attributes
    ----------
    networks, topologies
        Of the epochs; topologies are kept for plans that a trainer runs alone.
    seen
        Logarithms of goodputs, latencies and speeds over those at base figures, then the share of
        the episode's epochs, as logarithms, since each link and each speed last changed, (E, V).
    step_s
        Iterations of the C known plans, (E, C). [s]
    """

    networks: NetworkFigures
    topologies: tuple[Topology, ...]
    seen: Real
    step_s: Real


class DrawnCourses:
    """Draws of the world of a setting by seed; the last ones are kept.

    Parameters
    ----------
    known
        Plans whose times are worked out for all epochs.
    """

    def __init__(self, setting: Setting, known: Sequence[KnownPlan]) -> None:
        self._setting, self._known = setting, tuple(known)
        self._base = setting.networks([setting.world.topology.at_start()])
        self._drawn: dict[int, DrawnCourse] = {}

    def of(self, seed: int) -> DrawnCourse:
        """Return the draw of a seed."""
        draw = self._drawn.pop(seed, None)
        if draw is None:
            draw = self._made(seed)
            while len(self._drawn) >= _MOST_DRAWS:
                self._drawn.pop(next(iter(self._drawn)))
        self._drawn[seed] = draw
        return draw

    def _made(self, seed: int) -> DrawnCourse:
        setting = self._setting
        held = freeze_topologies(setting.world, seed)
        networks = setting.networks(held)
        count, num_known = setting.world.num_epochs, len(self._known)
        epochs = np.repeat(np.arange(count), num_known)
        plans = list(self._known) * count
        flat = steps_s(
            setting, networks.rows(epochs), plans, [held[epoch] for epoch in epochs.tolist()]
        )
        return DrawnCourse(
            networks=networks,
            topologies=() if setting.trainer.is_ideal else held,
            seen=self._seen(networks),
            step_s=flat.reshape(count, num_known),
        )

    def _seen(self, networks: NetworkFigures) -> Real:
        base = self._base
        count, size = networks.rate_flops_per_s.shape
        apart = ~np.eye(size, dtype=np.bool_)
        goodput = networks.goodput_bytes_per_s[:, apart] / base.goodput_bytes_per_s[0, apart]
        latency_s, base_s = networks.latency_s[:, apart], base.latency_s[0, apart]
        is_late = base_s > 0.0
        late = np.where(is_late, latency_s, 1.0) / np.where(is_late, base_s, 1.0)
        speed = networks.rate_flops_per_s / base.rate_flops_per_s[0]
        logs = [np.log(each) for each in (goodput, late, speed)]
        held = [_epochs_held(each) for each in (logs[0], logs[2])]
        longest = np.log1p(count)
        return np.concatenate([*logs, *(np.log1p(each) / longest for each in held)], axis=1)


def _epochs_held(logs: Real) -> Whole:
    """Epochs since each figure changed last, counted from the first, (E, V)."""
    found = np.zeros(logs.shape, dtype=np.int64)
    for epoch in range(1, len(logs)):
        is_same = np.abs(logs[epoch] - logs[epoch - 1]) <= _CHANGED_BY
        found[epoch] = np.where(is_same, found[epoch - 1] + 1, 0)
    return found
