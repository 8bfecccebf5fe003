"""Bytes saved against the even split under a weight of communication, and their price in time."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from agents.decision.frozen_network import freeze_topology
from agents.decision.situation import Preference
from des import Plan, Topology
from scenarios.frame.statistics import mean_and_interval
from scenarios.study.targets.measurement_size import SchedulerColumn
from scenarios.study.targets.references import Communication, communication_of
from scenarios.study.targets.target import Goal, Target, mean_fields
from scenarios.suites import SuiteWorld

SAVED = 0.30
WEIGHTS = (0.2, 0.4, 0.6, 0.8)
"""Weights of communication that a policy is asked for, besides none; time has the rest."""

_HALVED = 2.0
"""Factor by which activations in 8 bits in place of 16 are smaller."""


class Preferred(NamedTuple):
    """Parts of the even split's bytes, and times over that of the plan for time alone.

    ``sent`` of the plan chosen, which is the quickest that saves enough, else that of fewest bytes;
    ``halved`` of the plan for time alone with its activations in half as many bits.
    """

    sent: float
    time: float
    halved_sent: float
    halved_time: float


def measure(
    column: SchedulerColumn,
    worlds: list[SuiteWorld],
    even_of: Callable[[SuiteWorld, Topology], Communication | None],
) -> Target:
    """Measure what first plans save under the weight of communication that costs least time.

    Parameters
    ----------
    even_of
        A step of the even split over all domains; None where the trainer cannot run it.
    """
    found = []
    for world in worlds if column.propose is not None else ():
        draw = column.scope.draws(world)[0]
        even = even_of(world, freeze_topology(world, draw, 0))
        if even is not None and even.cost_bytes > 0.0:
            found.append(preferred(column, world, draw, even.cost_bytes))
    notes = ("not measured: only policies take weights",) if not found else _notes(found)
    return Target(
        name="communication below the even split",
        definition="1 - C / C_even of the first plan under the weight of communication that saves "
        "30 % for least time; bytes over all links and hops of an iteration",
        reference="the even split over all domains under its best depth",
        goal=Goal(sense="at least", target=SAVED),
        **mean_fields([1.0 - one.sent for one in found]),
        notes=notes,
    )


def preferred(
    column: SchedulerColumn, world: SuiteWorld, draw: int, even_bytes: float
) -> Preferred:
    """Measure one draw."""
    topology = freeze_topology(world, draw, 0)

    def step_of(plan: Plan) -> Communication:
        return communication_of(topology, world.workload, plan)

    quickest = column.still_plan(world, draw)
    asked = (Preference(time=1.0 - one, communication=one) for one in WEIGHTS)
    steps = [step_of(quickest), *(step_of(column.still_plan(world, draw, one)) for one in asked)]
    enough = [one for one in steps if one.cost_bytes <= (1.0 - SAVED) * even_bytes]
    chosen = (
        min(enough, key=lambda one: one.iteration_s)
        if enough
        else min(steps, key=lambda one: one.cost_bytes)
    )
    halved = step_of(replace(quickest, activation_compression=_HALVED))
    return Preferred(
        sent=chosen.cost_bytes / even_bytes,
        time=chosen.iteration_s / steps[0].iteration_s,
        halved_sent=halved.cost_bytes / even_bytes,
        halved_time=halved.iteration_s / steps[0].iteration_s,
    )


def _notes(found: list[Preferred]) -> tuple[str, ...]:
    num_enough = sum(one.sent <= 1.0 - SAVED for one in found)
    time, halved_sent, halved_time = (
        mean_and_interval([100.0 * (part - 1.0) for part in parts])
        for parts in zip(
            *((one.time, one.halved_sent, one.halved_time) for one in found), strict=True
        )
    )
    return (
        f"30 % saved in {num_enough} of {len(found)} draws",
        f"its price: {time.mean:+.1f}{time.spread_text} % of the time of the plan for time alone",
        f"that one with activations in 8 bits: {-halved_sent.mean:.1f} % saved for "
        f"{halved_time.mean:+.1f} % of the time, what that does to the loss apart",
    )
