"""Bound plans of trained and untrained proposals, of rules and of the search, on each network."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.decision.situation import Situation
from agents.decision.training_job import TrainingJob
from agents.hi_ppo.bound_proposals import Sketch, search_proposed, sketching
from agents.hi_ppo.controls import CONTROLS, control_proposer
from agents.hi_ppo.placement.placement_checkpoint import PlacementNet
from agents.hi_ppo.placement.proposals import Proposer
from agents.judge.look_ahead import LookAhead
from agents.planners.table import PLANNERS
from agents.search.bound_search import BoundFound, search_bound
from agents.search.search import PlanRequest
from agents.trainers.trainer import Trainer
from des import InfeasiblePlacementError, Plan
from des.compiled.simulate import simulate_compiled
from scenarios.study.ablations.variants import HI_PPO

RULE_NAMES = ("uniform", "proportional", "formula", "mast", "atlas")
"""Planners of milliseconds whose plans are bound together, the best of them in hindsight."""

RULES, SEARCH = "rules", "search"
"""Rows of what these planners place, and of the search of bound plans."""

SketchOf = Mapping[tuple[str, int], Sketch]
"""Sources of sketches by variant and seed."""


def sketches_of(policies: Mapping[str, Sequence[PlacementNet]], how: LookAhead) -> SketchOf:
    """Return sources of sketches, each with the same look-ahead; rules propose one plan each."""
    found: dict[tuple[str, int], Sketch] = {}
    for name, trained in policies.items():
        for seed, policy in enumerate(trained):
            found[name, seed] = sketching(Proposer(policy), look_ahead=how)
    for control in CONTROLS:
        for seed in range(len(policies[HI_PPO])):
            proposer = control_proposer(control, look_ahead=how, seed=seed)
            found[control, seed] = sketching(proposer, look_ahead=how, seed=seed)
    found[RULES, 0] = _by_rules
    return MappingProxyType(found)


def _by_rules(situation: Situation) -> list[Plan]:
    problem = PlanningProblem(
        topology=situation.topology, workload=situation.workload, simulator=simulate_compiled
    )
    rng = np.random.default_rng(0)
    return [PLANNERS[name](problem, rng) for name in RULE_NAMES]


def bound_rows(
    network: str, situation: Situation, sketches: SketchOf, trainer: Trainer
) -> list[dict[str, object]]:
    """Rows of one network: ``gap`` of a step over the quickest bound plan of all, as a share.

    NaN where what is proposed does not fit; ``response_s`` is a timing.
    """
    request = PlanRequest(
        topology=situation.topology, job=TrainingJob.of(situation.workload), trainer=trainer
    )
    judged = list(_judged(request, sketches))
    best_s = min((step_s for _, _, step_s, _ in judged), default=np.nan)
    return [
        {
            "network": network,
            "num_domains": situation.topology.num_domains,
            "variant": variant,
            "seed": seed,
            "gap": step_s / best_s - 1.0 if np.isfinite(step_s) else np.nan,
            "response_s": response_s,
        }
        for variant, seed, step_s, response_s in judged
    ]


def _judged(request: PlanRequest, sketches: SketchOf) -> Iterator[tuple[str, int, float, float]]:
    """Variant, seed, time of a step (``inf`` where nothing fits), and of the decision. [s]"""
    for (variant, seed), sketch in sketches.items():
        yield variant, seed, *_timed(partial(search_proposed, request, sketch))
    yield SEARCH, 0, *_timed(partial(search_bound, request))


def _timed(find: Callable[[], BoundFound]) -> tuple[float, float]:
    began_s = time.perf_counter()
    try:
        step_s = find().best.bound.step_s
    except InfeasiblePlacementError:
        step_s = np.inf
    return step_s, time.perf_counter() - began_s
