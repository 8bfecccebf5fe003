"""Checks of what an answer says of its doubt: fresh searches, and true figures that are off."""

from dataclasses import dataclass

import numpy as np

from agents.answer.sureness import OFF_FACTORS, other_requests, sureness_of
from agents.decision.bound_plan import BoundPlan
from agents.decision.training_job import TrainingJob
from agents.search.bound_search import search_bound
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest
from agents.trainers.table import trainer_named
from des import Corrections, InfeasiblePlacementError, Topology, lower
from des.compiled.simulate import makespan_compiled_s

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class SureRow:
    """Statements of an answer on one world, and how many of them hold.

    Attributes
    ----------
    num_cases
        Cases of `agents.answer.sureness.Sureness`, of which ``num_contradicted`` have a quicker
        plan by a search of its own that knows nothing of the answer.
    num_draws
        Draws of true figures: a factor on the bandwidth of every link and one on all times of
        layers, each within `OFF_FACTORS`. Under ``num_held`` the plan takes a time in its range.
    """

    world: str
    model: str
    num_cases: int
    num_contradicted: int
    num_draws: int
    num_held: int

    def __str__(self) -> str:
        return (
            f"{self.world}, {self.model}: {self.num_contradicted} of {self.num_cases} cases "
            f"contradicted by a search of their own, {self.num_held} of {self.num_draws} draws in "
            "the range"
        )


def sure_row(name: str, topology: Topology, job: TrainingJob, num_draws: int) -> SureRow:
    """Check the answer for a job with Megatron-LM; draws are those of seed 0.

    Raises
    ------
    InfeasiblePlacementError
        If the job fits nowhere.
    """
    request = PlanRequest(topology=topology, job=job, trainer=trainer_named("megatron"))
    found = search_bound(request)
    best = found.best
    known = sureness_of(request, PlanObjective(), best, near=found.near)
    fresh = [_fresh_s(asked) for _, asked in other_requests(request, best)]
    said = [np.inf if one.row is None else one.row.figures.step_s for one in known.cases]
    rng = np.random.default_rng(0)
    drawn = [_drawn_s(rng, best.bound) for _ in range(num_draws)]
    least_s, most_s = known.least_s * (1.0 - _ROUNDING), known.most_s * (1.0 + _ROUNDING)
    return SureRow(
        world=name,
        model=job.model,
        num_cases=len(said),
        num_contradicted=sum(
            own_s < one_s * (1.0 - _ROUNDING) for own_s, one_s in zip(fresh, said, strict=True)
        ),
        num_draws=num_draws,
        num_held=sum(least_s <= step_s <= most_s for step_s in drawn),
    )


def _fresh_s(request: PlanRequest) -> float:
    """Step of the best plan of a search that knows nothing of another; inf where none fits. [s]"""
    try:
        return search_bound(request).best.figures.step_s
    except InfeasiblePlacementError:
        return np.inf


def _drawn_s(rng: np.random.Generator, bound: BoundPlan) -> float:
    """Step of a plan where each link and the layers are off by a factor of their own. [s]"""
    num_links = len(bound.topology.links)
    factors = rng.uniform(*OFF_FACTORS, num_links)
    off = Corrections(compute_time_factor=float(rng.uniform(*OFF_FACTORS)))
    world = bound.topology.scaled(factors, np.ones(num_links))
    return makespan_compiled_s(world, lower(world, bound.workload, bound.plan, off), off)
