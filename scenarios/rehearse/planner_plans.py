"""Plans of planners as the reference runtime runs them, each as a launch of its own."""

import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from agents.decision.bound_plan import BoundPlan
from agents.decision.depths import DEPTHS
from agents.decision.held import held_topology
from agents.decision.problem import Planner, PlanningProblem
from agents.planners.table import PLANNERS
from agents.search.bind import PlanBinder
from agents.trainers.reference import REFERENCE_TRAINER
from des import Placement, Plan
from des.base.checks import nearest
from des.base.command import UsageError
from des.compiled.simulate import simulate_compiled
from des.plan.synchronisation import agree_every_step
from scenarios.launch.command import write_launch
from scenarios.launch.launch_files import launch_files
from scenarios.study.trained_plans import searched_plans, trained_world
from scenarios.suites import SuiteWorld, suite

DECIDE = "decide"
MEGATRON_EVEN = "megatron_even"

_SUITE, _NUM_DOMAINS = "eval_static", 4
"""Suite of the worlds, and their domains: few, as each stage is a process."""


def rehearsed_planner(name: str) -> Planner:
    """Return a planner by name, each with the best depth of the warm-up but `MEGATRON_EVEN`.

    Raises
    ------
    UsageError
        If there is none of that name.
    """
    if name == MEGATRON_EVEN:
        return _megatron_even
    if name not in PLANNERS:
        raise UsageError(f"unknown planner {name!r}; {nearest(name, (MEGATRON_EVEN, *PLANNERS))}")
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
            plan = found[name] = _planned(world, name)
        except ValueError as error:  # what a planner refuses is a result
            found[name] = " ".join(str(error).split())
        else:
            write_launch(plan, None, folder / name)
    return found


def _planned(world: SuiteWorld, name: str) -> BoundPlan:
    """Plan of a planner that the runtime runs, one that exchanges after every step."""
    topology, workload = held_topology(world, world.seed, 0), world.workload
    if name == DECIDE:
        rows = searched_plans(topology, workload, REFERENCE_TRAINER).rows
        return _first_launched([row.bound for row in rows])
    problem = PlanningProblem(
        topology=topology,
        workload=workload,
        schedule=world.schedule,
        schedules=DEPTHS,
        simulator=simulate_compiled,
    )
    rng = np.random.default_rng([world.seed, world.index, zlib.crc32(name.encode())])
    binder = PlanBinder(topology=topology, workload=workload, trainer=REFERENCE_TRAINER)
    return _first_launched([binder.bind(rehearsed_planner(name)(problem, rng))])


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
