"""Slowdown of training where the links fluctuate."""

from collections.abc import Sequence

import numpy as np

from agents.decision.run_epochs import run_course
from agents.decision.situation import MakeScheduler
from agents.replanning.table import SCHEDULERS
from des import STEADY
from scenarios.study.targets.measurement_size import (
    SchedulerColumn,
    Scope,
    by_world,
    fluctuating,
    moving_by,
)
from scenarios.study.targets.target import Goal, Target, mean_fields
from scenarios.suites import SuiteWorld

LATENCY_JITTER = 0.20
TARGET_AT = 0.3

PLANNERS = ("search_once", "search_h8")
"""Planners in the notes; of a short run the first one only, of real sites none. The last one, which
searches in every epoch, is measured at `TARGET_AT` alone.
"""


def measure(column: SchedulerColumn) -> list[Target]:
    """Measure the curve of mean time over fluctuations of the bandwidth."""
    scope = column.scope
    worlds = scope.worlds("eval_calm") + scope.worlds("eval_held")
    curve = curve_of(scope.as_run(column.make), scope, worlds, scope.sizes.fluctuations)
    rivals = () if scope.has_sites else PLANNERS[: 1 if scope.is_short else None]
    curves = {column.name: curve} | {name: _rival(name, scope, worlds) for name in rivals if worlds}
    return [
        Target(
            name="slower at bandwidth +-30 %",
            definition="mean time with bandwidths +-30 % and latencies +-20 % over that with the "
            "same links held at base, less 1; the load is the same in both",
            reference="the same scheduler on held links",
            goal=Goal(sense="below", target=0.10, stretch=0.03),
            **mean_fields(curve[TARGET_AT]),
            notes=tuple(f"{name}: {_show(one)}" for name, one in curves.items()),
        )
    ]


def _rival(name: str, scope: Scope, worlds: Sequence[SuiteWorld]) -> dict[float, list[float]]:
    at = (TARGET_AT,) if name == PLANNERS[-1] else scope.sizes.fluctuations
    return scope.once(
        ("curve", name), lambda: curve_of(scope.as_run(SCHEDULERS[name]), scope, worlds, at)
    )


def curve_of(
    make: MakeScheduler, scope: Scope, worlds: Sequence[SuiteWorld], fluctuations: Sequence[float]
) -> dict[float, list[float]]:
    """Time over that on held links, less 1, of each world, by fluctuation of the bandwidths."""
    still_s = {
        (world.name, draw): _total_s(make, scope, moving_by(world, STEADY, "still"), draw)
        for world in worlds
        for draw in scope.draws(world)
    }

    def slowdowns(fluctuation: float) -> list[float]:
        return by_world(
            scope,
            worlds,
            lambda world, draw: (
                _total_s(make, scope, fluctuating(world, fluctuation, LATENCY_JITTER), draw)
                / still_s[world.name, draw]
                - 1.0
            ),
        )

    return {at: slowdowns(at) for at in fluctuations}


def _total_s(make: MakeScheduler, scope: Scope, world: SuiteWorld, draw: int) -> float:
    num_epochs = min(world.num_epochs, scope.sizes.num_epochs)
    return run_course(world, draw, make(), num_epochs=num_epochs, must_fit=False).total_s


def _show(curve: dict[float, list[float]]) -> str:
    return ", ".join(
        f"{100 * at:.0f} %: {100 * float(np.mean(values)):+.2f} %"
        for at, values in curve.items()
        if values
    )
