"""Training data of the plan policy: groups drawn for many networks, with their costs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.hi_ppo.placement.encoder import Networks, networks_of
from agents.hi_ppo.plans.group_decode import GroupScores, GroupTrace, decode_groups
from agents.hi_ppo.plans.group_pointer import GroupTraces, traces_of
from agents.hi_ppo.plans.plan_config import PlanConfig
from agents.hi_ppo.plans.plan_policy import (
    PlanPolicy,
    drawn_trace,
    groups_of,
    tokens_of,
    trace_noise,
)
from agents.hi_ppo.plans.plan_worlds import PlanNetworks, PlanWorld, looked_ahead, plan_world
from agents.hi_ppo.plans.simple_proposals import neighbour_groups
from agents.hi_ppo.plans.sketch_judge import Groups
from agents.ppo.training_state import random_state, set_random_state
from des import Topology, Workload


class PlanRollout(NamedTuple):
    """B networks with N drawn plans each.

    ``rewards`` (B, N) of the groups under their best schedule, ``by_schedule`` (B, N, S) under all.
    ``found`` are the best groups of a look-ahead from the drawn ones, (B, 1, T), None without.
    """

    networks: Networks
    traces: GroupTraces
    schedules: Tensor
    old_schedule_log_probs: Tensor
    rewards: Tensor
    by_schedule: Tensor
    found: GroupTraces | None
    found_rewards: Tensor


class NetworkBatches:
    """Networks in batches of similar size, in the order in which batches are full."""

    def __init__(self, source: PlanNetworks, config: PlanConfig, rng: np.random.Generator) -> None:
        self._source, self._batches, self.rng = source, config.batches, rng
        self._num_taken = self._num_batches = 0
        self._waiting: dict[int, list[tuple[Topology, Topology, Workload]]] = {}

    def drawn(self) -> list[PlanWorld]:
        """Take networks until a batch is full; larger ones than the largest batch are skipped."""
        return [plan_world(*one) for one in self._next_batch()]

    def _next_batch(self) -> list[tuple[Topology, Topology, Workload]]:
        self._num_batches += 1
        while True:
            network = next(self._source)
            for most, count in self._batches:
                if network[0].num_domains <= most:
                    own = self._waiting.setdefault(most, [])
                    own.append(network)
                    if len(own) == count:
                        del self._waiting[most]
                        return own
                    break

    def state(self) -> dict[str, object]:
        """Plain content that `load_state` continues from."""
        return {"num_batches": self._num_batches, "rng": random_state(self.rng)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a state: the source, which must be fresh, is run up to there."""
        while self._num_batches < state["num_batches"]:
            self._next_batch()
        set_random_state(self.rng, state["rng"])


@torch.no_grad()
def collect_plans(
    policy: PlanPolicy,
    worlds: list[PlanWorld],
    config: PlanConfig,
    generator: torch.Generator,
    rng: np.random.Generator,
) -> PlanRollout:
    """Draw groups and a schedule for each network, judge them, and look ahead from them."""
    networks = networks_of([world.features for world in worlds])
    encoded, scores = policy(networks)
    drawn = [
        drawn_trace(
            scores.of(row, world.num_domains),
            world.features.facts,
            trace_noise(config.samples_per_network, world.num_domains, generator),
            world.most_stages,
            world.most_groups,
        )
        for row, world in enumerate(worlds)
    ]
    traces = traces_of(drawn)
    log_probs = policy.schedule_logits(networks, encoded, traces).log_softmax(dim=-1)
    flat = log_probs.flatten(0, 1).exp()
    schedules = torch.multinomial(flat, 1, generator=generator).view(log_probs.shape[:2])
    sketches = [
        [groups_of(tokens, world.num_domains) for tokens in trace.tokens]
        for world, trace in zip(worlds, drawn, strict=True)
    ]
    costs = [world.costs(own) for world, own in zip(worlds, sketches, strict=True)]
    by_schedule = torch.from_numpy(-np.stack(costs)).float()
    rewards = by_schedule.amax(dim=-1)
    found, found_rewards = None, rewards.amax(dim=1)
    if config.look_ahead_budget:
        best = [
            next(iter(_looked_ahead(world, own, config, rng).items()))
            for world, own in zip(worlds, sketches, strict=True)
        ]
        found = traces_of(
            [forced_trace(world, one) for world, (one, _) in zip(worlds, best, strict=True)]
        )
        found_rewards = -torch.tensor([cost for _, cost in best])
    return PlanRollout(
        networks=networks,
        traces=traces,
        schedules=schedules,
        old_schedule_log_probs=log_probs.gather(-1, schedules.unsqueeze(-1)).squeeze(-1),
        rewards=rewards,
        by_schedule=by_schedule,
        found=found,
        found_rewards=found_rewards,
    )


def _looked_ahead(
    world: PlanWorld, drawn: list[Groups], config: PlanConfig, rng: np.random.Generator
) -> dict[Groups, float]:
    """Look ahead from drawn groups, and from a few by nearest neighbours."""
    begun = [*drawn, *neighbour_groups(world, config.num_neighbours, rng)]
    return looked_ahead(world, begun, budget=config.look_ahead_budget, rng=rng)


def forced_trace(world: PlanWorld, groups: Groups) -> GroupTrace:
    """The trace of groups that are given; its probabilities are those of scores of 0."""
    size = world.num_domains
    trace = GroupTrace.empty(1, size)
    tokens = tokens_of(groups, size)
    trace.tokens[0, : len(tokens)] = tokens
    decode_groups(
        GroupScores.zeros(size),
        world.features.facts,
        np.zeros((1, 2 * size, size + 2), dtype=np.float32),
        world.most_stages,
        world.most_groups,
        trace,
    )
    return trace
