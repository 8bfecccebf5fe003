"""Decision times: over domains, inside one, and both together."""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from agents.decision.frozen_network import freeze_topology
from agents.decision.run_epochs import epoch_situation
from agents.decision.situation import Scheduler
from agents.planners.search.search import search
from agents.replanning.bound_schedulers import BINDING
from des import Plan
from des.base.lazy import lazy_imports
from scenarios.frame.statistics import mean_and_interval
from scenarios.study.targets.local_level import CompletePlanScheduler, local_decisions_s
from scenarios.study.targets.measurement_size import LARGE, SchedulerColumn, Scope
from scenarios.study.targets.target import MILLISECONDS, Goal, Target
from scenarios.suites import SuiteWorld

with lazy_imports(__name__):
    from agents.ppo import devices

Clock = Callable[[], float]
"""Seconds since some moment."""

_NUM_WARM_UP, _MOST_TIMED = 4, 8
"""Decisions on each world that are not timed, and most worlds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedDecision:
    """One decision by two clocks.

    Attributes
    ----------
    wall_s, cpu_s
        Wall time, and CPU time of this process; the difference is waiting for a core. [s]
    parts_s
        Wall time by part of the scheduler, as it says itself. [s]
    """

    wall_s: float
    cpu_s: float
    parts_s: dict[str, float]


def measure(column: SchedulerColumn) -> list[Target]:
    """Time decisions on worlds of 10 domains, or on those that a file has, on one thread."""
    devices.use_torch_threads(1)
    sizes, agent = column.scope.sizes, column.local
    count = min(sizes.num_worlds, _MOST_TIMED)
    worlds = column.scope.worlds("hard", count, (LARGE,)) or column.scope.worlds("hard", count)
    across = timed_decisions(column, worlds, column.timed_scheduler())
    whole, inside, levels = list[TimedDecision](), list[float](), ("no local agent",)
    if not column.scope.trainer.is_ideal:
        whole, levels = across, (f"complete plans of trainer {column.scope.trainer.name}",)
    elif agent is not None:
        both = CompletePlanScheduler(column.make(), agent, column.scope.seed)
        whole = timed_decisions(column, worlds, both)
        levels = (
            f"{both.num_misfits} decisions without a complete plan that fits and agrees; "
            f"{both.num_fallbacks} kept an earlier plan",
        )
    if agent is not None:
        inside = local_decisions_s(
            agent,
            num_decisions=sizes.num_decisions,
            num_warm_up=_NUM_WARM_UP,
            budget_s=sizes.timing_budget_s,
            seed=column.scope.seed,
        )
    return [
        _row(
            f"inter-domain decision, {worlds[0].num_domains} domains",
            [one.wall_s - one.parts_s.get(BINDING, 0.0) for one in across],
            Goal(sense="below", target=1.0, stretch=0.005),
            (_count(across), *_parts(across), *_of_search(column.scope, worlds[0])),
        ),
        _row(
            "intra-domain decision",
            inside,
            Goal(sense="below", target=0.1, stretch=0.005),
            _inside_notes(column, len(inside)) if inside else levels,
        ),
        _row(
            "response of both levels",
            [one.wall_s for one in whole],
            Goal(sense="at most", target=2.0, stretch=0.02),
            (_count(whole), *levels) if whole else levels,
        ),
    ]


def _inside_notes(column: SchedulerColumn, count: int) -> tuple[str, ...]:
    """Count the decisions, and say that plans of a trainer do not come from the local agent."""
    counted = f"{count} decisions on drawn cases of one domain, batch 1, warm"
    if column.scope.trainer.is_ideal:
        return (counted,)
    return counted, "of the local agent, which has no part in plans of a trainer"


def timed_decisions(
    column: SchedulerColumn,
    worlds: Sequence[SuiteWorld],
    scheduler: Scheduler,
    *,
    wall_clock: Clock = time.perf_counter,
    cpu_clock: Clock = time.process_time,
) -> list[TimedDecision]:
    """Let the scheduler decide until there are enough decisions, or the budget is spent.

    First it decides on a few epochs of each world to warm up, also for changes of a plan; these are
    not counted. One decision is counted at least. What runs between decisions, such as drawing the
    links, is not in their times but in the budget.
    """
    ends_s = wall_clock() + column.scope.sizes.timing_budget_s
    for world in worlds:
        scheduler.begin()
        warm: Plan | None = None
        for epoch in range(min(_NUM_WARM_UP, world.num_epochs)):
            topology = freeze_topology(world, column.scope.seed, epoch)
            warm = scheduler.decide(epoch_situation(world, topology, epoch, warm)).plan
        if wall_clock() > ends_s:
            break
    with _heap_at_rest():
        return _timed(column, worlds, scheduler, ends_s, (wall_clock, cpu_clock))


@contextmanager
def _heap_at_rest() -> Iterator[None]:
    """Keep Python's garbage collector from all earlier objects, as a long-running server can.

    A full collection over all objects of the loaded libraries takes about 0.2 s.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _timed(
    column: SchedulerColumn,
    worlds: Sequence[SuiteWorld],
    scheduler: Scheduler,
    ends_s: float,
    clocks: tuple[Clock, Clock],
) -> list[TimedDecision]:
    """Time decisions on one draw of a world after the other; wall clock first, then CPU."""
    sizes, found = column.scope.sizes, list[TimedDecision]()
    (wall_clock, cpu_clock), turn = clocks, 0
    while True:
        world, draw = worlds[turn % len(worlds)], column.scope.seed + turn // len(worlds)
        turn += 1
        scheduler.begin()
        last: Plan | None = None
        for epoch in range(world.num_epochs):
            situation = epoch_situation(world, freeze_topology(world, draw, epoch), epoch, last)
            begin_s, begin_cpu_s = wall_clock(), cpu_clock()
            decision = scheduler.decide(situation)
            cpu_s, wall_s = cpu_clock() - begin_cpu_s, wall_clock() - begin_s
            last = decision.plan
            found.append(TimedDecision(wall_s=wall_s, cpu_s=cpu_s, parts_s=decision.response_s))
            if len(found) >= sizes.num_decisions or wall_clock() > ends_s:
                return found


def _count(decisions: Sequence[TimedDecision]) -> str:
    """Number of decisions, and their CPU time: near the wall time where no other work ran."""
    cpu_s = [one.cpu_s for one in decisions]
    return f"{len(decisions)} decisions, batch 1, warm, one thread; CPU time {_show(cpu_s)}"


def _parts(decisions: Sequence[TimedDecision]) -> tuple[str, ...]:
    """Median of each part that the scheduler names."""
    names = decisions[0].parts_s
    if not names:
        return ()
    medians = {name: float(np.median([one.parts_s[name] for one in decisions])) for name in names}
    shown = ", ".join(f"{name} {1e3 * part_s:.3g} ms" for name, part_s in medians.items())
    return (f"median by part: {shown}",)


def _row(name: str, seconds: Sequence[float], goal: Goal, notes: tuple[str, ...]) -> Target:
    is_known = len(seconds) > 0
    return Target(
        name=name,
        definition="99th percentile of the wall time from a changed network to a valid plan",
        reference="planners' search time on the same cases",
        goal=goal,
        value=float(np.quantile(seconds, 0.99)) if is_known else float("nan"),
        interval=mean_and_interval(seconds) if is_known else None,
        unit=MILLISECONDS,
        notes=(f"wall time {_show(seconds)}", *notes) if is_known else notes,
    )


def _show(seconds: Sequence[float]) -> str:
    p50, p99 = np.quantile(seconds, (0.5, 0.99)).tolist()
    return f"p50 {1e3 * p50:.4g} ms, p99 {1e3 * p99:.4g} ms, max {1e3 * max(seconds):.4g} ms"


def _of_search(scope: Scope, world: SuiteWorld) -> tuple[str, ...]:
    """Search time of the planner: seconds, so it is left out of a short run."""
    if scope.is_short:
        return ("the search is timed in a run that is not short",)

    def search_s() -> float:
        topology = freeze_topology(world, scope.seed, 0)
        search(topology, world.workload, max_judged=1)  # compiled code is loaded
        begin_s = time.perf_counter()
        search(topology, world.workload)
        return time.perf_counter() - begin_s

    took_s = scope.once(("search", world.name), search_s)
    return (f"the search takes {1e3 * took_s:.4g} ms on the first world",)
