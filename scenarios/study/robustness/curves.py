"""Time of training on links that fluctuate, over that on the same links held at base.

Planners are held or repeated, and trained policies decide again.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from agents.decision.frozen_network import freeze_topologies
from agents.decision.problem import Planner
from agents.decision.run_epochs import run_course
from agents.decision.situation import MakeScheduler
from agents.judge.steady_judge import SteadyJudge
from agents.judge.step_times import step_times_s
from agents.planners.table import PLANNERS, quick_planners
from agents.replanning.plan_costs import PlanTimes
from agents.replanning.search_schedulers import search_anew
from agents.replanning.table import SCHEDULERS
from des import EVERY_STEP, STEADY, Plan, Topology
from scenarios.frame.statistics import endless_or_mean
from scenarios.study.targets.measurement_size import fluctuating, moving_by
from scenarios.study.targets.references import held_work_s
from scenarios.study.trained_plans import depth_problem
from scenarios.suites import SuiteWorld

HELD = "search_once"
"""The strongest search at base figures, held; every planner's plan is held as well."""

_DEFAULT_REPEATED = ("search_h8", "atlas_h8", "formula_h8")


def held_planners() -> Mapping[str, Planner]:
    """Planners that plan once, at base figures, each with the schedule that suits it best."""
    planners = {name: row.over_depths for name, row in PLANNERS.items()}
    return MappingProxyType({**planners, HELD: search_anew})


def replanning() -> Mapping[str, MakeScheduler]:
    """Schedulers that decide in every epoch."""
    return MappingProxyType({name: make for name, make in SCHEDULERS.items() if name != HELD})


def planner_names() -> tuple[str, ...]:
    """Names of all planners, those that are repeated first."""
    return (*replanning(), *held_planners())


def default_names() -> tuple[str, ...]:
    """Names measured by default: planners of milliseconds, held, and some that are repeated."""
    return (*_DEFAULT_REPEATED, *quick_planners(), HELD)


COLUMNS = ("method", "fluctuation", "jitter", "world", "draw", "slowdown", "total_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Swing:
    """Fluctuation of the links about their base figures, as shares of them."""

    fluctuation: float
    jitter: float


STILL = Swing(fluctuation=0.0, jitter=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A method that has no curve on a world, and why."""

    method: str
    world: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Study:
    """Amount of the measurement on every world.

    Attributes
    ----------
    held
        Planners whose plan at base figures is held.
    schedulers
        Those that decide in every epoch and pay for changes.
    num_epochs
        First epochs of a draw.
    seed
        For planners that draw.
    """

    held: Mapping[str, Planner]
    schedulers: Mapping[str, MakeScheduler]
    swings: Sequence[Swing]
    num_draws: int
    num_epochs: int
    seed: int = 0


def perturb_links(world: SuiteWorld, swing: Swing) -> SuiteWorld:
    """Return the world with uniform bandwidths and latencies, redrawn whenever the load is.

    With nothing to swing its links stand still at base figures. The load takes the same course
    whatever the links do, and one draw has the same random numbers at every swing.
    """
    if swing == STILL:
        return moving_by(world, STEADY, "still")
    return fluctuating(world, swing.fluctuation, swing.jitter)


def robustness_rows(
    study: Study, worlds: Sequence[SuiteWorld]
) -> tuple[pd.DataFrame, list[LeftOut]]:
    """Measure all methods on all worlds.

    Returns
    -------
    tuple[pandas.DataFrame, list[LeftOut]]
        One row per method, swing, world and draw, with `COLUMNS`; ``slowdown`` is the time of the
        draw, ``total_s``, over that on links held at base by the same method under the same load,
        less 1. And which methods have none, because they found no plan that fits.
    """
    rows, left_out = list[tuple[object, ...]](), list[LeftOut]()
    for world in worlds:
        plans, without = _plans_at_base(study, world)
        left_out += without
        for draw in range(study.seed, study.seed + study.num_draws):
            totals = [
                _totals_s(study, plans, perturb_links(world, swing), draw)
                for swing in (STILL, *study.swings)
            ]
            still_s = totals[0]
            for swing, found in zip(study.swings, totals[1:], strict=True):
                where = (swing.fluctuation, swing.jitter, world.name, draw)
                rows += [
                    (name, *where, total_s / still_s[name] - 1.0, total_s)
                    for name, total_s in found.items()
                ]
    return pd.DataFrame(rows, columns=list(COLUMNS)), left_out


def means_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean slowdown by method and swing over worlds, each the mean of its draws.

    ``half_width`` is that of the 95 % interval; not a number of a single world.
    """
    keys = ["method", "fluctuation", "jitter"]
    by_world = frame.groupby([*keys, "world"], sort=False)["slowdown"].mean().reset_index()
    rows = []
    for key, group in by_world.groupby(keys, sort=False):
        interval = endless_or_mean(group["slowdown"].to_numpy(dtype=float))
        rows.append((*key, interval.mean, interval.half_width, len(group)))
    return pd.DataFrame(rows, columns=[*keys, "mean", "half_width", "num_worlds"])


def relative_times(frame: pd.DataFrame, unit: str) -> pd.DataFrame:
    """Return mean times by method and fluctuation, at the largest jitter, over those of a method.

    Its times are those with the least fluctuation and jitter, on the same worlds and draws.
    """
    keys = ["world", "draw"]
    is_calm = (frame["fluctuation"] == frame["fluctuation"].min()) & (
        frame["jitter"] == frame["jitter"].min()
    )
    calm = frame[is_calm & (frame["method"] == unit)]
    joined = frame.join(calm.set_index(keys)["total_s"].rename("unit_s"), on=keys)
    joined["ratio"] = joined["total_s"] / joined["unit_s"]
    worst = joined[joined["jitter"] == frame["jitter"].max()]
    table = worst.pivot_table(index="method", columns="fluctuation", values="ratio", aggfunc="mean")
    ordered: pd.DataFrame = table.sort_values(table.columns[-1])
    return ordered


def _plans_at_base(study: Study, world: SuiteWorld) -> tuple[dict[str, Plan], list[LeftOut]]:
    """Plans of the planners that hold theirs; those without one that fits are left out."""
    problem = depth_problem(world.topology, world.workload, world.schedule)
    plans, left_out = dict[str, Plan](), list[LeftOut]()
    for name, planner in study.held.items():
        rng = np.random.default_rng([study.seed, world.index, zlib.crc32(name.encode())])
        try:
            plan = planner(problem, rng)
        except ValueError as error:  # what a planner refuses is a result
            why = " ".join(str(error).split())
            left_out.append(LeftOut(method=name, world=world.name, why=why))
            continue
        if problem.judge(plan).fits_memory:
            plans[name] = plan
        else:
            why = "its plan does not fit into memory"
            left_out.append(LeftOut(method=name, world=world.name, why=why))
    return plans, left_out


def _totals_s(
    study: Study, plans: Mapping[str, Plan], world: SuiteWorld, draw: int
) -> dict[str, float]:
    """Time of a draw by method; that of held plans is of iterations alone. [s]"""
    num_epochs = min(world.num_epochs, study.num_epochs)
    totals_s = {
        name: run_course(world, draw, make(), num_epochs=num_epochs, must_fit=False).total_s
        for name, make in study.schedulers.items()
    }
    networks = freeze_topologies(world, draw, num_epochs)
    held_s = held_times_s(world, networks, list(plans.values()))
    totals_s |= {name: held_work_s(world, held_s[:, at]) for at, name in enumerate(plans)}
    return totals_s


def held_times_s(
    world: SuiteWorld, networks: Sequence[Topology], plans: Sequence[Plan]
) -> np.ndarray:
    """Iteration times of plans on networks that stand still, (networks, plans). [s]

    Of plans whose replicas seldom exchange, the mean over the time between two exchanges.
    """
    is_plain = np.array([plan.synchronisation == EVERY_STEP for plan in plans], dtype=bool)
    judge = SteadyJudge(world.workload, world.topology.num_domains)
    plain = PlanTimes(judge, [plan for plan, each in zip(plans, is_plain, strict=True) if each])
    rare = [plan for plan, each in zip(plans, is_plain, strict=True) if not each]
    times_s = np.empty((len(networks), len(plans)))
    for row, topology in enumerate(networks):
        if is_plain.any():
            times_s[row, is_plain] = plain.on(topology)
        times_s[row, ~is_plain] = step_times_s(topology, world.workload, rare)
    return times_s
