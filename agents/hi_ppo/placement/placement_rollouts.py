"""Training data of the placement policy: plans sampled for many networks, with their costs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.decision.depths import DEPTHS
from agents.decision.situation import TIME_ONLY, Preference
from agents.hi_ppo.placement.config import PlacementConfig
from agents.hi_ppo.placement.decode import DrawnOrders, decode_orders, depth_plans
from agents.hi_ppo.placement.features import Features, features_of, seen_by
from agents.hi_ppo.placement.placement_policy import (
    PlacementPolicy,
    draw_noise,
    orders_of,
    scores_of,
)
from agents.hi_ppo.placement.pointer import DomainOrders, Networks, networks_of
from agents.judge.candidates import CostObjective
from agents.judge.look_ahead import LookAhead, PlanJudge, aim_of, load_job, plan_costs
from agents.judge.steady_judge import MISFIT
from agents.ppo.trained_policy import random_state, set_random_state
from des import NO_CORRECTIONS, Corrections, Placement, Plan, Topology, Workload
from des.base.parallel_map import ParallelMap
from des.compiled.many.layout import Observations, Real, Small, Whole
from des.compiled.many.steady import Job, Plans
from des.world.domain_load import DomainLoad

_MISFIT_COST = 3.0
"""Excess cost of a plan that does not fit over the worst one that does."""

_MOST_OCCUPANCY = 0.3

WorldSource = Iterator[tuple[Topology, Topology, Workload]]
"""Networks as they are at some time, standing still; the same at base figures; and the jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWorld:
    """One situation to learn from."""

    judge: PlanJudge
    job: Job
    aim: CostObjective
    features: Features


class PlacementRollout(NamedTuple):
    """B networks with N drawn plans each.

    ``rewards`` (B, N) of the orders under their best depth, ``by_depth`` (B, N, D) of all depths,
    ``gains`` (B, N) what the drawn shares have won over even ones. ``found`` are the best orders
    that a look-ahead found from the drawn ones, (B, 1, K), empty without a look-ahead.
    """

    networks: Networks
    most_stages: Tensor
    orders: DomainOrders
    log_probs: Tensor
    depths: Tensor
    tilts: Tensor
    rewards: Tensor
    by_depth: Tensor
    gains: Tensor
    found: DomainOrders | None
    found_rewards: Tensor


class Worlds:
    """Makes situations of networks: judges are kept; loads, last plans, preferences drawn."""

    def __init__(
        self, source: WorldSource, rng: np.random.Generator, preference: Preference | None = None
    ) -> None:
        self._source, self._rng, self._one = source, rng, preference
        self._num_taken = 0
        self._corrections = NO_CORRECTIONS

    def recalibrate(self, corrections: Corrections) -> None:
        """Judge with other factors from now on; they are no part of the state."""
        self._corrections = corrections

    def drawn(self, count: int, most_domains: int) -> list[TrainingWorld]:
        """Draw the next networks of at most ``most_domains`` domains; others are skipped."""
        found: list[TrainingWorld] = []
        while len(found) < count:
            topology, base, workload = self._next()
            if topology.num_domains <= most_domains:
                found.append(self._world(topology, base, workload))
        return found

    def state(self) -> dict[str, object]:
        """Plain content that `load_state` continues from."""
        return {"num_taken": self._num_taken, "rng": random_state(self._rng)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a state: the source, which must be fresh, is run up to there."""
        set_random_state(self._rng, state["rng"])
        while self._num_taken < state["num_taken"]:
            self._next()

    def _next(self) -> tuple[Topology, Topology, Workload]:
        self._num_taken += 1
        return next(self._source)

    def _world(self, topology: Topology, base: Topology, workload: Workload) -> TrainingWorld:
        judge = _judge_of(workload, topology.num_domains, self._corrections)
        loads = self._loads(topology.num_domains)
        preference = self._preference()
        job = load_job(judge.job_of(topology), loads)
        return TrainingWorld(
            judge=judge,
            job=job,
            aim=aim_of(topology, job, preference),
            features=features_of(
                topology,
                judge.job_of(base),
                job,
                loads=loads,
                last_plan=self._last_plan(topology, workload),
                preference=preference,
                pays_bytes=bool(self._rng.random() < 0.5),
            ),
        )

    def _preference(self) -> Preference:
        """Half of all care for time alone; the others are uniform over all weights."""
        if self._one is not None:
            return self._one
        if self._rng.random() < 0.5:
            return TIME_ONLY
        time, utilisation, communication = self._rng.dirichlet((1.0, 1.0, 1.0)).tolist()
        return (
            Preference(
                time=time, utilisation=1.0 - time - communication, communication=communication
            )
            if utilisation > 0.0
            else TIME_ONLY
        )

    def _loads(self, num_domains: int) -> tuple[DomainLoad, ...]:
        """Half of all know nothing of other jobs; else they take memory in half of the cases."""
        if self._rng.random() < 0.5:
            return ()
        most = _MOST_OCCUPANCY if self._rng.random() < 0.5 else 0.0
        return tuple(
            DomainLoad(
                utilisation=float(self._rng.uniform(0.0, 0.5)),
                memory_occupancy=float(self._rng.uniform(0.0, most)) if most else 0.0,
                queue_length=float(self._rng.poisson(1.0)),
            )
            for _ in range(num_domains)
        )

    def _last_plan(self, topology: Topology, workload: Workload) -> Plan | None:
        """Half of all begin; the others have an even plan over domains in any order."""
        if self._rng.random() < 0.5:
            return None
        size = int(self._rng.integers(1, min(topology.num_domains, workload.num_layers) + 1))
        domains = self._rng.permutation(topology.num_domains)[:size].tolist()
        whole, rest = divmod(workload.num_layers, size)
        counts = [whole + (stage < rest) for stage in range(size)]
        return Plan(placement=Placement.contiguous(domains, counts), schedule=DEPTHS[2])


@torch.no_grad()
def collect(
    policy: PlacementPolicy,
    worlds: list[TrainingWorld],
    config: PlacementConfig,
    generator: torch.Generator,
    at_work: ParallelMap = map,
) -> PlacementRollout:
    """Draw plans for each network, judge them, and look ahead from them.

    Networks are judged ``at_work``, each for itself.
    """
    networks = networks_of([seen_by(policy.architecture, world.features) for world in worlds])
    encoded, scores = policy(networks)
    count = config.samples_per_world
    drawn = [
        decode_orders(
            scores_of(scores, row, size),
            world.features.facts,
            draw_noise(count, size, generator),
            world.judge.most_stages,
        )
        for row, (world, size) in enumerate(zip(worlds, networks.num_domains.tolist(), strict=True))
    ]
    orders = orders_of(drawn)
    logits = policy.heads.depth_logits(networks, encoded, orders)
    flat = logits.flatten(0, 1).softmax(dim=-1)
    depths = torch.multinomial(flat, 1, generator=generator).view(logits.shape[:2])
    means = policy.heads.tilts(encoded, orders)
    noise = torch.randn(means.shape, generator=generator) * policy.heads.log_std.exp()
    tilts = means + noise * (torch.arange(means.shape[-1]) < orders.sizes.unsqueeze(-1))
    drawn_plans = [
        _DrawnPlans(
            job_of=(world.judge.workload, world.judge.num_domains, world.judge.corrections),
            job=world.job,
            aim=world.aim,
            orders=own,
            depths=depths[row].numpy(),
            tilts=tilts[row].numpy(),
            budget=config.look_ahead_budget,
        )
        for row, (world, own) in enumerate(zip(worlds, drawn, strict=True))
    ]
    judged = list(at_work(_judge, drawn_plans))
    by_depth, gains, found, found_rewards = zip(*judged, strict=True)
    stacked = torch.from_numpy(-np.stack(by_depth)).float()
    return PlacementRollout(
        networks=networks,
        most_stages=torch.tensor([world.judge.most_stages for world in worlds]),
        orders=orders,
        log_probs=torch.from_numpy(np.stack([one.log_probs for one in drawn])),
        depths=depths,
        tilts=tilts,
        rewards=stacked.amax(dim=-1),
        by_depth=stacked,
        gains=torch.from_numpy(np.stack(gains)).float(),
        found=orders_of(list(found)) if config.look_ahead_budget else None,
        found_rewards=-torch.tensor(found_rewards),
    )


@lru_cache(maxsize=512)
def _judge_of(workload: Workload, num_domains: int, corrections: Corrections) -> PlanJudge:
    """Judge of a job, one in each process."""
    return PlanJudge(workload, num_domains, corrections=corrections)


class _DrawnPlans(NamedTuple):
    """Plans drawn for one network; ``job_of`` says whose judge knows them, see `_judge_of`."""

    job_of: tuple[Workload, int, Corrections]
    job: Job
    aim: CostObjective
    orders: DrawnOrders
    depths: Whole
    tilts: Observations
    budget: int


def _judge(task: _DrawnPlans) -> tuple[Real, Real, DrawnOrders, float]:
    """Costs of orders by depth, what shares win, and the best order of a look-ahead and its cost.

    Costs are those of `CostObjective` less that of even work on all domains without any network.
    """
    judge, job, aim = _judge_of(*task.job_of), task.job, task.aim
    drawn, depths = task.orders, task.depths
    plans = depth_plans(drawn, judge.most_stages, range(len(DEPTHS)))
    judge.fill_by(job, plans, np.ones(plans.domain.shape))
    own = Plans(*(field[np.arange(len(depths)) * len(DEPTHS) + depths] for field in plans))
    own = own._replace(end_layer=own.end_layer.copy())
    judge.fill_by(job, own, np.exp(task.tilts[:, : judge.most_stages].astype(np.float64)))
    unit = aim.time_weight * ideal_log_s(job)
    even = _costs(judge, job, aim, plans) - unit
    by_depth = even.reshape(len(depths), len(DEPTHS))
    before = by_depth[np.arange(len(depths)), depths]
    gains = before - (_costs(judge, job, aim, own) - unit)
    if not task.budget:
        return by_depth, gains, drawn, 0.0
    pool = judge.look_ahead(
        job, aim, drawn.domains, drawn.sizes, LookAhead(budget=task.budget, num_refined=0)
    )
    if not pool.counts[0]:
        return by_depth, gains, _one_of(drawn.domains, drawn.sizes, 0), float(by_depth.min())
    best = int(pool.costs.argmin())
    found = _one_of(pool.plans.domain, pool.plans.num_stages, best, drawn.domains.shape[1])
    return by_depth, gains, found, float(pool.costs[best]) - unit


def _one_of(domains: Small, sizes: Small, row: int, width: int | None = None) -> DrawnOrders:
    wide = np.zeros((1, width or domains.shape[1]), dtype=np.int32)
    wide[0, : sizes[row]] = domains[row, : sizes[row]]
    return DrawnOrders(wide, sizes[row : row + 1].copy(), np.zeros(1, dtype=np.float32))


def _costs(judge: PlanJudge, job: Job, aim: CostObjective, plans: Plans) -> Real:
    """Costs of plans; those that do not fit cost 3 more than they would with all times 20 fold."""
    times_s = judge.scores(job, plans)
    ideal_s = np.exp(ideal_log_s(job))
    is_misfit = times_s >= MISFIT
    costs = plan_costs(aim, plans, np.where(is_misfit, ideal_s, np.minimum(times_s, 20 * ideal_s)))
    return costs + _MISFIT_COST * is_misfit


def ideal_log_s(job: Job) -> float:
    """Logarithm of the time of all work at the speed of all domains together."""
    flops = job.sums_before[-1, 0] + job.sums_before[-1, 1]
    return float(np.log(job.num_microbatches * flops / job.rate_flops_per_s.sum()))
