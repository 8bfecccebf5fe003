"""Situations that the plan policy learns from, and what groups of domains cost in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from agents.hi_ppo.placement.features import Features, features_of
from agents.hi_ppo.placement.placement_rollouts import ideal_log_s
from agents.hi_ppo.plans.group_changes import changed_groups
from agents.hi_ppo.plans.sketch_judge import Groups, SketchJudge
from agents.judge.paced_judge import PacedJudge
from des import NO_CORRECTIONS, Corrections, Topology, Workload
from des.compiled.many.job import job_on
from des.compiled.many.layout import Real

MOST_PLAN_DOMAINS = 64
"""Most domains of a network that plans are proposed for."""

_MOST_LOG_COST, _MISFIT_COST = 6.0, 2.0
"""Largest cost of groups that fit, and what is added for groups that do not."""

_NUM_KEPT, _ROUND = 4, 32
"""Best groups that are changed in turn, and changes until the best are looked for again."""

PlanNetworks = Iterator[tuple[Topology, Topology, Workload]]
"""Networks as they are at some time, standing still; the same at base figures; and the jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWorld:
    """One situation: its features, and a judge of groups."""

    features: Features
    sketches: SketchJudge
    ideal_log_s: float

    @property
    def judge(self) -> PacedJudge:
        """Judge of single pipelines."""
        return self.sketches.judge

    @property
    def most_stages(self) -> int:
        """Most domains of a group."""
        return self.judge.most_stages

    @property
    def most_groups(self) -> int:
        """Most groups: one microbatch each."""
        return self.judge.workload.num_microbatches

    @property
    def num_domains(self) -> int:
        """Number of domains."""
        return len(self.features.nodes)

    def costs(self, sketches: Sequence[Groups]) -> Real:
        """Logarithms of step times over that of even work without a network, (N, S).

        They are at most 6; groups that do not fit cost 8.
        """
        times_s = self.sketches.step_times_s(sketches)
        fits = np.isfinite(times_s)
        logs = np.log(np.where(fits, times_s, 1.0)) - self.ideal_log_s
        found: Real = np.where(
            fits, np.minimum(logs, _MOST_LOG_COST), _MOST_LOG_COST + _MISFIT_COST
        )
        return found


def plan_world(
    topology: Topology,
    base: Topology,
    workload: Workload,
    corrections: Corrections = NO_CORRECTIONS,
) -> PlanWorld:
    """Describe a network that stands still for the plan policy.

    Raises
    ------
    ValueError
        If it has more than 64 domains.
    """
    sketches = SketchJudge(topology, workload, corrections)
    job = sketches.judge.job
    base_job = job if base is topology else job_on(base, workload, corrections)
    return PlanWorld(
        features=features_of(topology, base_job, job, most_domains=MOST_PLAN_DOMAINS),
        sketches=sketches,
        ideal_log_s=ideal_log_s(job),
    )


def looked_ahead(
    world: PlanWorld, begun: Sequence[Groups], *, budget: int, rng: np.random.Generator
) -> dict[Groups, float]:
    """Change the best groups at random as long as a budget of tries lasts.

    Returns
    -------
    dict[Groups, float]
        All groups that were judged and their costs, see `PlanWorld.costs`, the best first.
    """
    costs: dict[Groups, float] = {}
    _judge(world, begun, costs)
    left = budget
    while left > 0:
        kept = sorted(costs, key=lambda one: costs[one])[:_NUM_KEPT]
        tried = [
            changed_groups(kept[at % len(kept)], world.num_domains, world.most_groups, rng)
            for at in range(min(left, _ROUND))
        ]
        left -= len(tried)
        _judge(world, [one for one in tried if max(map(len, one)) <= world.most_stages], costs)
    return dict(sorted(costs.items(), key=lambda each: each[1]))


def _judge(world: PlanWorld, groups: Sequence[Groups], costs: dict[Groups, float]) -> None:
    """Add the costs of groups that are new."""
    new = [one for one in dict.fromkeys(groups) if one not in costs]
    if new:
        costs.update(zip(new, world.costs(new).min(axis=1).tolist(), strict=True))
