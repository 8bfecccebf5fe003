"""Rehearsals of the plans of planners: all predicted first, then measured one by one, and kept.

Each plan is a launch of its own of the reference runtime.
"""

import hashlib
import statistics
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from agents.decision.bound_plan import BoundPlan
from agents.decision.frozen_network import freeze_topology
from agents.decision.problem import Planner, PlanningProblem
from agents.planners.table import PLANNERS
from agents.search.bind import PlanBinder
from agents.trainers.reference import REFERENCE_TRAINER
from des import Placement, Plan
from des.base.checks import require_count, require_known, require_positive
from des.base.command import UsageError
from des.base.names import counted
from des.base.speaking import SPEAKER
from des.base.text_files import read_json, read_text
from des.base.whole_folder import whole_folder
from des.plan.synchronisation import agree_every_step
from scenarios.frame.files import write_json
from scenarios.frame.run_lock import lock_folder
from scenarios.iteration.reference_launch import rank_devices
from scenarios.iteration.runtime_job import OPERATIONS, RUNTIME
from scenarios.launch.command import require_new, write_launch
from scenarios.launch.launch_files import launch_files
from scenarios.rehearse.rehearsal import RehearsalFlags, ended_s
from scenarios.study.trained_plans import depth_problem, search_plans, trained_world
from scenarios.suites import SuiteWorld, suite

DECIDE = "decide"
MEGATRON_EVEN = "megatron_even"

_SUITE, _NUM_DOMAINS = "eval_static", 4
"""Suite of the worlds, and their domains: few, as each stage is a process."""


def rehearse_planner(name: str) -> Planner:
    """Return a planner by name, each with the best depth of the warm-up but `MEGATRON_EVEN`.

    Raises
    ------
    UsageError
        If there is none of that name.
    """
    if name == MEGATRON_EVEN:
        return _megatron_even
    require_known("unknown planner", name, (MEGATRON_EVEN, *PLANNERS), UsageError)
    return PLANNERS[name].over_depths


def _megatron_even(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Equal parts over the domains in their order under 1F1B, as Megatron-LM divides by default."""
    domains, layers = problem.topology.num_domains, problem.workload.num_layers
    return problem.plan(Placement.even(domains, layers), "1f1b")


def rehearsed_world(index: int, seed: int) -> SuiteWorld:
    """Return a world of four sites, with the job as the runtime trains it."""
    world = suite(_SUITE).with_domains(_NUM_DOMAINS).world(index, seed)
    return trained_world(world, REFERENCE_TRAINER)


def launch_plans(
    world: SuiteWorld, planners: tuple[str, ...], folder: Path
) -> Mapping[str, BoundPlan | str]:
    """Write the launch of each planner's plan into a folder of its name.

    Returns
    -------
    Mapping
        The plan of each planner, or why it has none.
    """
    found: dict[str, BoundPlan | str] = {}
    for name in planners:
        try:
            plan = found[name] = _plan(world, name)
        except ValueError as error:  # what a planner refuses is a result
            found[name] = " ".join(str(error).split())
        else:
            write_launch(plan, None, folder / name)
    return found


def _plan(world: SuiteWorld, name: str) -> BoundPlan:
    """Plan of a planner that the runtime runs, one that exchanges after every step."""
    topology, workload = freeze_topology(world, world.seed, 0), world.workload
    if name == DECIDE:
        rows = search_plans(topology, workload, REFERENCE_TRAINER).rows
        return _first_launched([row.bound for row in rows])
    problem = depth_problem(topology, workload, world.schedule)
    rng = np.random.default_rng([world.seed, world.index, zlib.crc32(name.encode())])
    binder = PlanBinder(topology=topology, workload=workload, trainer=REFERENCE_TRAINER)
    return _first_launched([binder.bind(rehearse_planner(name)(problem, rng))])


def _first_launched(plans: list[BoundPlan]) -> BoundPlan:
    """The quickest plan of unchanged training for which launch files can be written."""
    refusal = ValueError("no plan exchanges after every step")
    for bound in sorted(plans, key=lambda one: one.step_s):
        if bound.plan.replicas and not agree_every_step(bound.plan.synchronisation):
            continue
        try:
            launch_files(bound)
        except ValueError as error:
            refusal = error
        else:
            return bound
    raise refusal


_PREDICTIONS, _LAUNCHES, _RUNS = "predictions.json", "launches", "runs"
_DIGITS = 12
_MOST_WORLDS = 1000

Prediction = dict[str, Any]
"""Planner, world, launch, and the time that is predicted for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerStudy:
    """Planners on the first worlds of a seed, whose quickest step takes ``seconds`` in each."""

    planners: tuple[str, ...]
    num_worlds: int
    seed: int
    seconds: float
    flags: RehearsalFlags

    def __post_init__(self) -> None:
        require_count("rehearse", "worlds", self.num_worlds, _MOST_WORLDS)
        require_positive("rehearse", "seconds", self.seconds)
        if len(set(self.planners)) < len(self.planners):
            raise UsageError(f"planners must be given once each, got {', '.join(self.planners)}")
        for name in self.planners:
            rehearse_planner(name)

    def predicted(self, folder: Path) -> Iterator[Prediction]:
        """Write the launch of each plan, and predict its rehearsal from the files."""
        for index in range(self.num_worlds):
            world = rehearsed_world(index, self.seed)
            launches = folder / _LAUNCHES / world.name
            plans = launch_plans(world, self.planners, launches)
            steps_s = [one.step_s for one in plans.values() if not isinstance(one, str)]
            for planner, plan in plans.items():
                found: Prediction = {"world": world.name, "planner": planner}
                if isinstance(plan, str):
                    yield found | {"error": plan}
                    continue
                own, scale = launches / planner, self.seconds / min(steps_s)
                yield found | {
                    "error": "",
                    "schedule": plan.plan.schedule,
                    "num_ranks": len(rank_devices(plan)),
                    "launch": _digest(own),
                    "scale": scale,
                    "predicted_s": self.flags.world(own, scale).predicted().makespan_s,
                }
            SPEAKER.reached(f"plans for {index + 1} of {self.num_worlds} worlds")


def measure_frame(
    study: PlannerStudy, folder: Path, settings: Mapping[str, object]
) -> pd.DataFrame:
    """Return the predicted and the measured time of each plan; what is in the folder is kept.

    Equal plans of planners for a world are rehearsed once. The hash of all predictions is printed
    before the first rehearsal. Of a folder that was begun with more worlds the first ones count.

    Raises
    ------
    UsageError
        If the folder holds another study, or something else.
    RankFailedError
        If a rank ends early or says nothing; the same command resumes after it.
    """
    if not (folder / _PREDICTIONS).exists():
        require_new(folder)
        _predict(study, folder, settings)
    with lock_folder(folder):
        document: Any = read_json(folder / _PREDICTIONS)
        begun = document["settings"]
        for name, value in settings.items():
            is_part = name == "worlds" and study.num_worlds <= begun[name]
            if begun.get(name) != value and not is_part:
                raise UsageError(
                    f"--out {folder}: {name} must be {begun.get(name)!r} as in its "
                    f"{_PREDICTIONS}, got {value!r}; choose another folder"
                )
        sha = hashlib.sha256((folder / _PREDICTIONS).read_bytes()).hexdigest()
        sys.stdout.write(
            f"predictions of {counted(len(document['predictions']), 'plan')}: sha256 {sha}\n"
        )
        sys.stdout.flush()
        num_rows = study.num_worlds * len(study.planners)
        return pd.DataFrame(list(_rows(study, folder, document["predictions"][:num_rows])))


def _predict(study: PlannerStudy, folder: Path, settings: Mapping[str, object]) -> None:
    """Write all launches and predictions, or nothing."""
    with whole_folder(folder) as growing:
        predictions = list(study.predicted(growing))
        write_json(growing / _PREDICTIONS, {"settings": dict(settings), "predictions": predictions})


def _rows(study: PlannerStudy, folder: Path, predictions: list[Prediction]) -> Iterator[Prediction]:
    (folder / _RUNS).mkdir(exist_ok=True)
    for number, one in enumerate(predictions):
        if one["error"]:
            yield one
            continue
        own = folder / _LAUNCHES / one["world"] / one["planner"]
        run = folder / _RUNS / f"{one['world']}-{one['launch']}.json"
        if not run.exists():
            world = study.flags.world(own, one["scale"])
            write_json(run, {"times_s": list(map(ended_s, study.flags.measured(own, world)))})
        times_s: Any = read_json(run)
        times_s = times_s["times_s"]
        SPEAKER.reached(f"{number + 1} of {len(predictions)} plans measured")
        yield one | {
            "measured_s": statistics.median_low(times_s),
            "least_s": min(times_s),
            "most_s": max(times_s),
        }


def _digest(folder: Path) -> str:
    """Digits that are equal for launches that run alike."""
    texts = [read_text(folder / name, "launch ") for name in (RUNTIME, *OPERATIONS.values())]
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:_DIGITS]
