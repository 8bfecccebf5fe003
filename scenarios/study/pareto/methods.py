"""Methods whose fronts are compared, by name."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.problem import PlanningProblem
from agents.decision.situation import Preference
from agents.planners.pareto.fronts import steady_judge
from agents.planners.pareto.nsga2 import nsga2
from agents.planners.pareto.proposals import Proposals, Propose
from agents.planners.rules.crosspipe import crosspipe
from agents.planners.table import reference_planners
from des import NO_CORRECTIONS, Plan
from des.compiled.simulate import simulate_compiled
from scenarios.study.pareto.fronts import Sweep, swept
from scenarios.study.pareto.search_sweep import SearchSweep
from scenarios.study.pareto.worlds import PricedWorld

NUM_EVALUATIONS = 5_000
"""Evaluations of NSGA-II as a method: a quarter of the reference's."""


def methods_of(
    objectives: Sequence[str], *, seed: int, policies: Mapping[str, Propose] | None = None
) -> dict[str, Sweep]:
    """Return all methods that are to be compared in some objectives.

    Parameters
    ----------
    policies
        Policies that know preferences; each decides once for each of the weights. Where
        activations count, which no preference weighs, each of its plans is offered under all
        depths.
    seed
        Of what draws.
    """
    sweeps: dict[str, Sweep] = {name: swept(one) for name, one in (policies or {}).items()}
    if "activation_bytes" in objectives:
        sweeps = {name: under_all_depths(sweep) for name, sweep in sweeps.items()}

    def nsga2_once(world: PricedWorld, preferences: Sequence[Preference]) -> Proposals:
        """Make one front, whatever the preferences."""
        front = nsga2(
            steady_judge(world.topology, world.workload, NO_CORRECTIONS, DEPTHS),
            objectives=objectives,
            num_evaluations=NUM_EVALUATIONS,
            seed=seed + 1,  # not the beginning of the reference's search
        )
        return Proposals(plans=tuple(one.plan for one in front.figures))

    def planners(world: PricedWorld, preferences: Sequence[Preference]) -> Proposals:
        """Ask each planner once: none knows preferences."""
        return planner_proposals(world, seed)

    return sweeps | {
        "search_sweep": SearchSweep(objectives),
        f"nsga2_{NUM_EVALUATIONS}": nsga2_once,
        "planners": planners,
    }


def under_all_depths(sweep: Sweep) -> Sweep:
    """Return the sweep that offers each plan of another under all depths, each plan once."""

    def deepened(world: PricedWorld, preferences: Sequence[Preference]) -> Proposals:
        found = sweep(world, preferences)
        plans = [replace(plan, schedule=depth) for plan in found.plans for depth in DEPTHS]
        return replace(found, plans=tuple(dict.fromkeys([*found.plans, *plans])))

    return deepened


def planner_proposals(world: PricedWorld, seed: int) -> Proposals:
    """One plan of each planner; those that have none for the world are named in the notes."""
    problem = PlanningProblem(
        topology=world.topology,
        workload=world.workload,
        schedule=world.schedule,
        schedules=DEPTHS,
        simulator=simulate_compiled,
    )
    plans: list[Plan] = []
    notes: list[str] = []
    for name, planner in (reference_planners() | {"crosspipe": crosspipe}).items():
        try:
            plans.append(planner(problem, np.random.default_rng(seed)))
        except ValueError as error:  # too many placements to enumerate, or none that fits
            notes.append(f"{name} has no plan: {error}")
    return Proposals(plans=tuple(dict.fromkeys(plans)), notes=tuple(notes))
