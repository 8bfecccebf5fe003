"""Drawn days under watch: ``python -m bench.watched_days`` prints how good and quick decisions are.

Ten sites, a link each way between every two, and one job that fills them. Links become congested by
a Markov law; a site is lost for two hours. Each minute every link is measured with an error of 5 %.
The clairvoyant knows the day and chooses among all plans that the watch has known, by dynamic
programming over five minutes each; the first plan is free for both. A move pays if the work done
until the next one, or the end of the day, is more than that of the plan left.
"""

import argparse
import math
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from agents.decision.bound_plan import BoundPlan
from agents.decision.training_job import TrainingJob
from agents.judge.placed_plans import place_on
from agents.replanning.move_cost import reachable_move
from agents.replanning.observed_world import ObservedWorld, WorldObservation
from agents.replanning.other_plans import OtherPlans, is_same_plan
from agents.replanning.stay_or_move import PayoffRule
from agents.replanning.watch import Watch, WatchVerdict
from agents.search.search import PlanRequest
from agents.trainers.table import trainer_named
from des import Topology
from des.dynamics.presets import DYNAMICS
from des.world.lost_parts import without_domain
from des.worlds.generator import PlaneWorlds
from scenarios.watch.watcher import line_of

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
GRID_S = 5 * MINUTE_S
NOISE = 0.05
OUTAGE_S = (12 * HOUR_S, 14 * HOUR_S)


@dataclass(frozen=True, kw_only=True)
class DrawnDay:
    """True worlds of a day, one for each five minutes."""

    base: Topology
    worlds: tuple[Topology, ...]
    lost_site: str

    @classmethod
    def draw(cls, seed: int, num_sites: int, length_s: float, law: str) -> "DrawnDay":
        """Draw the sites, the courses of their links, and the site that is lost."""
        rng = np.random.default_rng(seed)
        base = PlaneWorlds(num_domains=num_sites).draw(rng)
        lost = base.domains[int(rng.integers(num_sites))].name
        moving = replace(base, dynamics=DYNAMICS[law]).epoch_of(seed)
        worlds = []
        for number in range(int(length_s / GRID_S)):
            now = replace(moving.later(number * GRID_S).at_start(), routing_latencies_s=None)
            begin_s, end_s = OUTAGE_S
            is_lost = begin_s <= number * GRID_S < end_s
            worlds.append(without_domain(now, lost) if is_lost else now)
        return cls(base=base, worlds=tuple(worlds), lost_site=lost)

    def at(self, time_s: float) -> Topology:
        """The true world at a time of the day."""
        return self.worlds[int(time_s / GRID_S)]

    def seen(self, time_s: float, rng: np.random.Generator) -> Iterator[WorldObservation]:
        """All that is measured in a minute."""
        world = self.at(time_s)
        before = self.at(max(0.0, time_s - MINUTE_S))
        is_there = float(self.lost_site in world.index_of)
        if is_there != float(self.lost_site in before.index_of):
            yield WorldObservation(
                time_s=time_s, about=self.lost_site, figure="is_there", value=is_there
            )
        for link in world.links:
            rate = link.bandwidth_bytes_per_s * math.exp(NOISE * rng.standard_normal())
            yield WorldObservation(
                time_s=time_s,
                about=f"{link.source}->{link.target}",
                figure="bandwidth_bytes_per_s",
                value=rate,
            )


@dataclass(kw_only=True)
class Watched:
    """Decisions of a day, all plans that were known, and what the decisions took.

    ``path`` has the plan in force at each decision, by its place in ``plans``.
    """

    path: list[int] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    num_searches: int = 0
    plans: list[BoundPlan] = field(default_factory=list)
    decision_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    num_observations: int = 0
    memory_mb: list[float] = field(default_factory=list)

    def know(self, plans: Sequence[BoundPlan]) -> None:
        """Add plans that are new."""
        for one in plans:
            if not any(one is own or is_same_plan(one, own) for own in self.plans):
                self.plans.append(one)


def watched(day: DrawnDay, watch: Watch, seed: int) -> Watched:
    """Decide in each minute of a day."""
    rng, found = np.random.default_rng(seed + 1), Watched()
    for minute in range(int(len(day.worlds) * GRID_S / MINUTE_S)):
        seen = list(day.seen(minute * MINUTE_S, rng))
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        for one in seen:
            watch.take(one)
        verdict = watch.decide(minute * MINUTE_S)
        found.decision_s.append(time.perf_counter() - began_s)
        found.cpu_s.append(time.process_time() - began_cpu_s)
        found.num_observations += len(seen)
        if verdict.searched or verdict.action != "stay":
            assert watch.in_force is not None
            found.know([watch.in_force, *(one.bound for one in watch.others.plans)])
        if verdict.action != "stay":
            found.changes.append(line_of(verdict))
        found.num_searches += bool(verdict.searched)
        found.path.append(found.path[-1] if verdict.action == "stay" else _place(found, verdict))
        found.memory_mb.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return found


def step_rates(day: DrawnDay, plans: Sequence[BoundPlan]) -> np.ndarray:
    """Steps a second of plans on the true worlds, (times, plans); 0 where one cannot run."""
    rates = np.zeros((len(day.worlds), len(plans)))
    for number, world in enumerate(day.worlds):
        if number and world == day.worlds[number - 1]:
            rates[number] = rates[number - 1]
            continue
        for place, plan in enumerate(plans):
            try:
                rates[number, place] = 1.0 / place_on(plan, world).step_s
            except ValueError:
                continue
    return rates


def move_times(day: DrawnDay, plans: Sequence[BoundPlan]) -> np.ndarray:
    """Time of each move at the base figures, from row to column. [s]"""
    there = [place_on(one, day.base) for one in plans]
    costs = [[reachable_move(day.base, old, new, None) for new in there] for old in there]
    return np.array([[math.inf if one is None else one.total_s for one in row] for row in costs])


def work_of(path: np.ndarray, rates: np.ndarray, moves_s: np.ndarray) -> np.ndarray:
    """Steps done in each interval along a path, less those of the time of moves."""
    numbers = np.arange(len(path))
    done: np.ndarray = GRID_S * rates[numbers, path]
    done[1:] -= moves_s[path[:-1], path[1:]] * rates[numbers[1:], path[1:]]
    return done


def clairvoyant_path(rates: np.ndarray, moves_s: np.ndarray) -> np.ndarray:
    """Path of most work for who knows all rates."""
    to_come = GRID_S * rates[-1]
    onward = []
    for number in range(len(rates) - 2, -1, -1):
        after = to_come - moves_s * rates[number + 1]
        onward.append(after.argmax(axis=1))
        to_come = GRID_S * rates[number] + after.max(axis=1)
    path = [int(to_come.argmax())]
    for choice in reversed(onward):
        path.append(int(choice[path[-1]]))
    return np.array(path)


def unpaid(path: np.ndarray, rates: np.ndarray, moves_s: np.ndarray) -> tuple[int, int]:
    """Moves that did not pay, and all moves from plans that could run on."""
    at = [*(np.flatnonzero(np.diff(path)) + 1).tolist(), len(path)]
    lost = count = 0
    for begin, end in pairwise(at):
        old, new = path[begin - 1], path[begin]
        if rates[begin, old] == 0.0:
            continue
        count += 1
        gained = GRID_S * (rates[begin:end, new] - rates[begin:end, old]).sum()
        lost += bool(gained <= moves_s[old, new] * rates[begin, new])
    return lost, count


def main() -> None:
    """Print the figures of some days."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--sites", type=int, default=10)
    parser.add_argument("--trainer", default="megatron")
    parser.add_argument("--lines", action="store_true", help="print each change of plan")
    parser.add_argument("--law", default="markov_slow", choices=list(DYNAMICS))
    parser.add_argument("--confidence", type=float, default=PayoffRule().confidence)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--smoothing", type=float, default=300.0)
    parser.add_argument("--horizon", type=float, default=DAY_S)
    given = parser.parse_args()
    for seed in range(given.first_seed, given.first_seed + given.days):
        print(f"seed {seed}: {_day_text(given, seed)}", flush=True)


def _day_text(given: argparse.Namespace, seed: int) -> str:
    day = DrawnDay.draw(seed, given.sites, given.hours * HOUR_S, given.law)
    job = TrainingJob.of_tokens("llama2_70b", 32 * 4096, 4096, None)
    request = PlanRequest(topology=day.base, job=job, trainer=trainer_named(given.trainer))
    watch = Watch(
        world=ObservedWorld(base=day.base, time_constant_s=given.smoothing),
        others=OtherPlans(request=request),
        rule=PayoffRule(confidence=given.confidence, horizon_s=given.horizon),
    )
    found = watched(day, watch, seed)
    rates, moves_s = step_rates(day, found.plans), move_times(day, found.plans)
    every = int(GRID_S / MINUTE_S)
    path = np.array(found.path[::every])
    best = clairvoyant_path(rates, moves_s)
    work, most = work_of(path, rates, moves_s).sum(), work_of(best, rates, moves_s).sum()
    lost, count = unpaid(path, rates, moves_s)
    for line in found.changes if given.lines else ():
        print(line, flush=True)
    first_s, *later_s = found.decision_s
    return (
        f"{len(found.path)} decisions, {found.num_observations} observations, "
        f"{len(found.plans)} plans; {1.0 - work / most:.2%} of the clairvoyant's work lost, "
        f"{1.0 - work_of(np.full_like(path, path[0]), rates, moves_s).sum() / most:.2%} by the "
        f"first plan; {int((np.diff(path) != 0).sum())} moves (clairvoyant "
        f"{int((np.diff(best) != 0).sum())}), {lost} of {count} unforced ones did not pay; "
        f"{found.num_searches} searches; decision median {np.median(later_s):.3f} s, p99 "
        f"{np.quantile(later_s, 0.99):.3f} s, longest {max(later_s):.3f} s, first {first_s:.1f} s; "
        f"p99 of processor time {np.quantile(found.cpu_s[1:], 0.99):.3f} s; "
        f"memory {found.memory_mb[len(later_s) // 10]:.0f} MB after a tenth, "
        f"{found.memory_mb[-1]:.0f} MB at the end"
    )


def _place(found: Watched, verdict: WatchVerdict) -> int:
    assert verdict.plan is not None
    plan = verdict.plan
    return next(place for place, one in enumerate(found.plans) if is_same_plan(one, plan))


if __name__ == "__main__":
    main()
