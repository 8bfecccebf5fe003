"""Episodes of the named world under policies and rules, each kept in the run folder at its end."""

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread, main_thread

import numpy as np
import pandas as pd

from agents.decision.frozen_network import freeze_topology
from agents.decision.run_epochs import CourseResult, run_course
from agents.decision.situation import TIME_ONLY, Preference, Scheduler
from agents.hi_ppo.controls import Control, control_scheduler
from agents.hi_ppo.coordinator import coordinator_of
from agents.hi_ppo.policies import Policies, digest_of
from agents.judge.step_times import step_wan_bytes
from agents.planners.search.search import MOST_DOMAINS_FOR_ALL_ORDERS, search
from agents.replanning.pool import Pool, candidate_pool
from agents.replanning.table import RULES
from agents.replanning.tables import costs_of
from des import Corrections, Placement, Plan
from des.base.parallel_map import ParallelMap
from des.base.speaking import SPEAKER
from scenarios.frame.files import read_csv, write_csv
from scenarios.frame.run_folder import RunFolder
from scenarios.study.compare.dynamic_part import CLAIRVOYANT, MOST_PLANS, draw_of, walk
from scenarios.suites import SuiteWorld

EPISODES = "episodes"
"""Within the run folder; a folder for each set of weights and factors, with a file an episode."""

Rows = list[dict[str, object]]


_FEW_SEARCHED, _FEW_JUDGED = 8, 20_000
"""Networks of an episode that are searched for the rules, and plans of each search, where there
are too many orders to look at all."""

_NUM_TIMED = 4  # searches


@dataclass(frozen=True, kw_only=True)
class Case:
    """One draw of a block, the factors by which plans are judged in it, and what policies weigh."""

    block: str
    world: SuiteWorld
    draw: int
    draw_seed: int
    corrections: Corrections
    preference: Preference = TIME_ONLY


@dataclass(frozen=True, kw_only=True)
class Contender:
    """Policies in a file, or a control of them, by the name of their row.

    One that ``is_for_time`` decides for time alone, whatever the episodes are judged by.
    """

    name: str
    file: Path
    control: Control | None = None
    is_for_time: bool = False

    def decides_by(self, world: SuiteWorld) -> object:
        """Control, weights and misfits: contenders of which they are equal decide alike."""
        ways = Policies.load(self.file).decides_by(world.topology, world.workload)
        return self.control, ways, self.is_for_time

    def scheduler(self) -> Scheduler:
        """Make the scheduler."""
        policies = Policies.load(self.file)
        if self.control is not None:
            return control_scheduler(policies, self.control)()
        return coordinator_of(policies)


def episode_cases(
    worlds: Mapping[str, SuiteWorld],
    draw_seeds: Sequence[int],
    corrections: Corrections,
    preference: Preference,
) -> list[Case]:
    """List all draws of all blocks."""
    return [
        Case(
            block=block,
            world=world,
            draw=draw,
            draw_seed=seed,
            corrections=corrections,
            preference=preference,
        )
        for block, world in worlds.items()
        for draw, seed in enumerate(draw_seeds)
    ]


def total_rows(contenders: Sequence[Contender], case: Case) -> list[dict[str, object]]:
    """Rows of an episode under each contender with ``cost``: its time, moves included. [s]

    Where more counts the cost is ``exp(-R)``, whose relative differences are those of R.
    """
    courses = [_course(contender, case) for contender in contenders]
    if case.preference == TIME_ONLY:
        return [{"cost": course.total_s} for course in courses]
    return [{"cost": math.exp(-episode_value(course, case))} for course in courses]


def episode_value(course: CourseResult, case: Case) -> float:
    """Worth of an episode under the preference: R, see `Preference.value`.

    The reference is the work that counts as that of its epochs, done by the even pipeline.
    """
    world = case.world
    work = world.num_epochs * world.iterations_per_epoch
    num_layers = world.workload.num_layers
    even = Placement.even(min(world.num_domains, num_layers), num_layers)
    even_bytes = work * step_wan_bytes(world.workload, [Plan(placement=even)])[0]
    sent_bytes = course.bytes_per_token * course.num_iterations * course.tokens_per_iteration
    return case.preference.value(
        course.num_iterations / work,
        course.utilisation,
        float(sent_bytes / even_bytes) if even_bytes else 0.0,
    )


def judged_rows(contenders: Sequence[Contender], case: Case) -> list[dict[str, object]]:
    """Rows of an episode: those of the contenders, then those of the rules.

    Contenders that decide alike are judged once. Rules choose among plans that a search of each
    network up to now yields; the clairvoyant chooses among those of all epochs and of all
    contenders. Times are of an iteration, moves included; ``decision_time_s`` of rules is that of
    a search and of the choice.
    """
    made: dict[object, CourseResult] = {}
    courses = {}
    for one in contenders:
        way = one.decides_by(case.world)
        courses[one.name] = made[way] = made.get(way) or _course(one, case)
    rows = [_row(case, name, course.total_s, course) for name, course in courses.items()]
    used = [plan for course in courses.values() for plan in course.plans]
    draw = draw_of(case.world, case.draw_seed, _pool(case, used), case.corrections)
    paths, seconds = walk(draw, list(RULES))
    search_s = _search_s(case)
    for name, path in paths.items():
        costs = costs_of(draw.tables, path)
        choice_s = seconds[name] / case.world.num_epochs
        row = _row(case, name, costs.total_s, None)
        row["num_moves"] = sum(count for level, count in costs.moves.items() if level != "nothing")
        row["decision_time_s"] = np.nan if name == CLAIRVOYANT else search_s + choice_s
        rows.append(row)
    return rows


def _course(contender: Contender, case: Case) -> CourseResult:
    return run_course(
        case.world,
        case.draw_seed,
        contender.scheduler(),
        corrections=case.corrections,
        preference=TIME_ONLY if contender.is_for_time else case.preference,
        must_fit=False,
    )


def _row(case: Case, name: str, total_s: float, course: CourseResult | None) -> dict[str, object]:
    num_iterations = case.world.num_epochs * case.world.iterations_per_epoch
    row: dict[str, object] = {
        "block": case.block,
        "draw": case.draw,
        "method": name,
        "iteration_time_s": round(total_s / num_iterations, 9),  # sums differ in their last bits
    }
    if course is not None:
        row["num_moves"] = sum(epoch.level != "nothing" for epoch in course.rows[1:])
        row["decision_time_s"] = float(np.mean([epoch.decision_s for epoch in course.rows]))
        row["utilisation"], row["bytes_per_token"] = course.utilisation, course.bytes_per_token
        row["value"] = episode_value(course, case)
    return row


def _pool(case: Case, used: Sequence[Plan]) -> Pool:
    """Plans of the searches, with the epochs that yield them; the others no rule knows."""
    is_large = case.world.num_domains > MOST_DOMAINS_FOR_ALL_ORDERS
    pool = candidate_pool(
        case.world,
        case.draw_seed,
        corrections=case.corrections,
        max_plans=MOST_PLANS,
        max_searched=_FEW_SEARCHED if is_large else None,
        max_judged=_FEW_JUDGED if is_large else None,
    )
    return pool.joined(dict.fromkeys(used, case.world.num_epochs))


def _search_s(case: Case) -> float:
    """Mean wall time of a search, over the first epochs. [s]"""
    seconds = []
    for epoch in range(min(_NUM_TIMED, case.world.num_epochs)):
        topology = freeze_topology(case.world, case.draw_seed, epoch)
        begin_s = time.perf_counter()
        search(topology, case.world.workload, case.corrections)
        seconds.append(time.perf_counter() - begin_s)
    return float(np.mean(seconds))


def judge_once(
    judge: Callable[[Case], Rows],
    contenders: Sequence[Contender],
    cases: Sequence[Case],
    folder: RunFolder,
    at_work: ParallelMap,
) -> list[pd.DataFrame]:
    """Return the rows of each episode; those that the folder holds are not judged again.

    Parameters
    ----------
    judge
        Rows of an episode under the contenders; the same for the same weights and factors.
    """
    kept = folder.path / EPISODES / _digest(contenders, cases)
    kept.mkdir(parents=True, exist_ok=True)
    paths = [_path(kept, case) for case in cases]
    missing = [row for row, path in enumerate(paths) if not path.exists()]
    found = at_work(judge, [cases[row] for row in missing])
    for number, (row, rows) in enumerate(zip(missing, found, strict=True), start=1):
        write_csv(paths[row], pd.DataFrame(rows))
        if current_thread() is main_thread():
            SPEAKER.reached(f"{len(cases) - len(missing) + number} of {len(cases)} episodes")
    return [read_csv(path) for path in paths]


def _path(kept: Path, case: Case) -> Path:
    words = "".join(letter if letter.isalnum() else "_" for letter in case.block)
    return kept / f"{words}-{case.draw_seed}.csv"


def _digest(contenders: Sequence[Contender], cases: Sequence[Case]) -> str:
    """Digest of weights and factors, short enough for a name."""
    weights = [f"{one.name} {one.control} {digest_of(one.file)}" for one in contenders]
    factors = sorted({repr((case.corrections, case.preference)) for case in cases})
    return hashlib.sha256("\n".join([*weights, *factors]).encode()).hexdigest()[:16]
