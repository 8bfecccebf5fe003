"""Hi-PPO's placement with parts left out, each as something that decides or that proposes sketches.

Bound plans are those of the proposals, of rules and of the search, on each network.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.decision.situation import Situation
from agents.decision.training_job import TrainingJob
from agents.hi_ppo.bound_proposals import Sketch, search_proposed, sketching
from agents.hi_ppo.controls import CONTROLS, control_proposer
from agents.hi_ppo.coordinator import FIRST, QUICK
from agents.hi_ppo.placement.placement_checkpoint import PlacementNet, load_placement
from agents.hi_ppo.placement.placement_policy import PlacementPolicy
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.policies import Policies, shipped_files
from agents.judge.look_ahead import LookAhead
from agents.planners.table import PLANNERS
from agents.search.bound_search import BoundFound, search_bound
from agents.search.search import PlanRequest
from agents.trainers.trainer import Trainer
from des import InfeasiblePlacementError, Plan
from des.base.command import UsageError
from des.compiled.simulate import simulate_compiled

HI_PPO = "hi_ppo"
TRAINED_WITHOUT = ("pure_ppo", "no_encoder", "no_preference")
"""Variants with weights of their own; each is a flag."""

LOOK_AHEADS: Mapping[str, LookAhead] = MappingProxyType({"quick": QUICK, "first": FIRST})
"""Look-aheads by the names that users write: that of every epoch, and that of first plans."""

Decide = Callable[[Situation], Plan | None]
"""The plan for a situation, or None where the layers fit under no depth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way of placing, with the weights of one training.

    Attributes
    ----------
    looks_ahead
        Whether what the policy draws is judged and made better; else its likeliest order is taken,
        with its own depth and shares.
    seed
        Position of the weights among those given.
    """

    name: str
    looks_ahead: bool
    seed: int
    decide: Decide

    @property
    def title(self) -> str:
        """Name in tables."""
        return self.name if self.looks_ahead else f"{self.name} alone"


def policies_given(
    checkpoint: Sequence[Path], others: Mapping[str, Sequence[Path]]
) -> dict[str, list[PlacementNet]]:
    """Read the policies of all variants, those of all seeds; files that are shipped if none is.

    Raises
    ------
    CheckpointError
        If a file cannot be read or holds another thing.
    UsageError
        If a file does not lack what its flag says.
    """
    files = checkpoint or shipped_files()
    found = {HI_PPO: [Policies.load(path).placement for path in files]}
    for name, paths in others.items():
        if paths:
            found[name] = [load_placement(path) for path in paths]
            _check(name, paths, found[name])
    return found


def _check(name: str, paths: Sequence[Path], policies: Sequence[PlacementNet]) -> None:
    """Refuse files of another variant; how a policy was trained cannot be seen from its file."""
    for path, policy in zip(paths, policies, strict=True):
        sizes = policy.architecture
        if name == "no_encoder" and sizes.num_rounds:
            raise UsageError(f"{path}: num_rounds must be 0 for no_encoder, got {sizes.num_rounds}")
        if name == "no_preference" and sizes.sees_preference:
            raise UsageError(f"{path}: sees_preference must be False for no_preference, got True")


def _proposing(
    policies: Mapping[str, Sequence[PlacementNet]], how: LookAhead
) -> Iterator[tuple[str, int, Proposer, int]]:
    """All variants with all weights, and what has learnt nothing, drawn as often as seeds.

    Name, position of the weights, proposer, and seed of what it draws.
    """
    for name, trained in policies.items():
        for seed, policy in enumerate(trained):
            yield name, seed, Proposer(policy, look_ahead=how), 0
    for control in CONTROLS:
        for seed in range(len(policies[HI_PPO])):
            proposer = control_proposer(control, look_ahead=how, seed=seed)
            yield control, seed, proposer, seed


def variants_of(policies: Mapping[str, Sequence[PlacementNet]], how: LookAhead) -> list[Variant]:
    """All variants, each with its look-ahead, and alone where it is of a policy."""
    found = []
    for name, seed, proposer, draws in _proposing(policies, how):
        decide = looking_ahead(proposer, seed=draws)
        found.append(Variant(name=name, looks_ahead=True, seed=seed, decide=decide))
        if proposer.policy is not None:
            own = alone(proposer.policy)
            found.append(Variant(name=name, looks_ahead=False, seed=seed, decide=own))
    return found


def looking_ahead(proposer: Proposer, *, seed: int) -> Decide:
    """Decide for the best plan of a look-ahead."""
    return lambda situation: proposer.propose(situation, num_plans=1, seed=seed).plans[0]


def alone(policy: PlacementNet) -> Decide:
    """Decide for the policy's likeliest order, with its own depth and shares."""
    proposer, own = Proposer(policy), PlacementPolicy.of(policy)

    def decide(situation: Situation) -> Plan | None:
        judge = proposer.judge_of(situation.workload, situation.topology, situation.corrections)
        job = judge.job_of(situation.topology)
        features = proposer.features_of(situation, judge, job)
        try:
            plans, row = own.best_plan(features, judge, job)
        except ValueError:  # it says so of an order whose layers fit under no depth
            return None
        return judge.plan(plans, row)

    return decide


RULE_NAMES = ("uniform", "proportional", "formula", "mast", "atlas")
"""Planners of milliseconds whose plans are bound together, the best of them in hindsight."""

RULES, SEARCH = "rules", "search"
"""Rows of what these planners place, and of the search of bound plans."""

SketchOf = Mapping[tuple[str, int], Sketch]
"""Sources of sketches by variant and seed."""


def sketches_of(policies: Mapping[str, Sequence[PlacementNet]], how: LookAhead) -> SketchOf:
    """Return sources of sketches, each with the same look-ahead; rules propose one plan each."""
    found: dict[tuple[str, int], Sketch] = {
        (name, seed): sketching(proposer, look_ahead=how, seed=draws)
        for name, seed, proposer, draws in _proposing(policies, how)
    }
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
    judged = list(_judge(request, sketches))
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


def _judge(request: PlanRequest, sketches: SketchOf) -> Iterator[tuple[str, int, float, float]]:
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
