"""Sailor's search where the GPUs of domains are divided: tensor, data and pipeline parallelism."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.sailor.sailor_lists import (
    Order,
    border_bandwidths,
    lists_in_turn,
    one_way_messages_s,
)
from des import Parallelism, Placement, Plan
from des.costs.local_borders import local_message_s
from des.costs.memory import model_state_bytes
from des.costs.message_times import correct_inside
from des.costs.node_collectives import group_all_reduce_s
from des.costs.node_groups import data_group
from des.costs.stage_times import compute_rate_flops_per_s, device_work
from des.job.workload import total
from des.plan.plan import split_evenly

LEAST_SPEED_UP = 1.5
"""Least speed-up of the layers for which twice the GPUs are taken."""


_Run = tuple[int, int, int, int]
"""First stage, stages, tensor-parallel GPUs and replicas of a domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The last stages over the last domains of a list, by Sailor's formula.

    ``runs`` are a count of stages and a number of tensor-parallel GPUs a domain.
    """

    straggler_s: float
    sum_s: float
    sync_s: float
    runs: tuple[tuple[int, int], ...]


def search_parallel(
    problem: PlanningProblem, max_lists: int
) -> tuple[list[tuple[float, Plan]], int, bool]:
    """Plans by their estimates, lists looked at in all, and whether there are no others.

    The numbers of stages are those into which the layers divide evenly. For each, at most
    ``max_lists`` lists of domains are looked at, each with ever fewer replicas, by halves, as long
    as the estimate falls or nothing fits.
    """
    topology, num_layers = problem.topology, problem.workload.num_layers
    num_gpus = sum(domain.num_gpus for domain in topology.domains)
    bandwidths = border_bandwidths(topology)
    message_s, _ = one_way_messages_s(problem, bandwidths)
    found: list[tuple[float, int, Plan]] = []
    count, is_complete = 0, True
    for num_stages in range(1, min(num_layers, num_gpus) + 1):
        if num_layers % num_stages:
            continue
        stages = _Stages(problem, num_stages)
        most_domains = min(topology.num_domains, num_stages)
        for position, order in enumerate(lists_in_turn(bandwidths, most_domains)):
            if position == max_lists:
                is_complete = False
                break
            least_s = np.inf
            for num_replicas in _from_the_largest(problem, order):
                count += 1
                part = _best_part(stages, order, num_replicas, message_s)
                if part is None:
                    continue
                estimate_s = stages.estimate_s(part)
                if estimate_s >= least_s:
                    break
                least_s = estimate_s
                found.append((estimate_s, count, stages.plan(order, part, num_replicas)))
    found.sort(key=lambda one: one[:2])
    return [(estimate_s, plan) for estimate_s, _, plan in found], count, is_complete


def _from_the_largest(problem: PlanningProblem, order: Order) -> list[int]:
    """Powers of two of replicas that the domains of a list have GPUs for, the largest first."""
    most = min(problem.topology.domains[domain].num_gpus for domain in order)
    return [2**power for power in reversed(range(most.bit_length()))]


class _Stages:
    """Times and needs of equal stages on the domains of one problem."""

    def __init__(self, problem: PlanningProblem, num_stages: int) -> None:
        self.problem, self.num_stages = problem, num_stages
        self.counts = split_evenly(problem.workload.num_layers, num_stages)
        self._first = [0, *accumulate(self.counts)]
        self.tensor_of = lru_cache(maxsize=None)(self._tensor_of)
        self.work_s = lru_cache(maxsize=None)(self._work_s)
        self.exchanges_s = lru_cache(maxsize=None)(self._exchanges_s)

    def _sum(self, sums_before: Sequence[float], stage: int) -> float:
        return total(sums_before, self._first[stage], self.counts[stage])

    def _work_s(self, stage: int, domain: int, tensor: int, replicas: int) -> float:
        """Work on a microbatch. [s]"""
        problem, shared = self.problem, Parallelism(tensor=tensor, data=replicas)
        workload, corrections = problem.workload, problem.corrections
        place = problem.topology.domains[domain]
        work, exchange_s = device_work(workload, place, shared, corrections)
        flops = self._sum(work.forward, stage) + self._sum(work.backward, stage)
        work_s = flops / compute_rate_flops_per_s(place, corrections, shared)
        return work_s + self.counts[stage] * 2 * exchange_s

    def _exchanges_s(
        self, stage: int, domain: int, shared: Parallelism, device: int
    ) -> tuple[float, float]:
        """Exchange of gradients, and message to a neighbouring stage inside. [s]"""
        problem = self.problem
        place, corrections = problem.topology.domains[domain], problem.corrections
        num_parameters = self._sum(problem.workload.sums_before.num_parameters, stage)
        sync_s = group_all_reduce_s(
            problem.workload.gradient_bytes * num_parameters / shared.tensor,
            data_group(correct_inside(place, corrections), shared, device),
        )
        border = local_message_s(problem.workload, place, shared, corrections, device=device)
        return sync_s, border.transfer_s + border.latency_s

    def _tensor_of(self, stage: int, domain: int, replicas: int) -> int | None:
        """Fewest GPUs that hold a stage, a power of two; None if too few are there."""
        num_gpus = self.problem.topology.domains[domain].num_gpus
        tensor = 1
        while tensor * replicas <= num_gpus:
            if self._allows(domain, tensor) and self._fits(stage, domain, tensor, replicas):
                return tensor
            tensor *= 2
        return None

    def raised(self, stage: int, count: int, domain: int, tensor: int, replicas: int) -> int:
        """Double the GPUs of consecutive stages while there are enough and each doubling pays."""
        num_gpus = self.problem.topology.domains[domain].num_gpus
        while 2 * tensor * replicas * count <= num_gpus and self._allows(domain, 2 * tensor):
            now_s = self.work_s(stage, domain, tensor, replicas)
            if now_s < LEAST_SPEED_UP * self.work_s(stage, domain, 2 * tensor, replicas):
                break
            tensor *= 2
        return tensor

    def _allows(self, domain: int, tensor: int) -> bool:
        """Whether tensor groups of this size may lie on the nodes of a domain."""
        place = self.problem.topology.domains[domain]
        return place.nodes is None or place.nodes.allows_tensor(tensor, place.num_gpus)

    def _fits(self, stage: int, domain: int, tensor: int, replicas: int) -> bool:
        """Whether a stage fits with what 1F1B holds of it."""
        held = min(self.problem.workload.num_microbatches, self.num_stages - stage)
        shared = Parallelism(tensor=tensor, data=replicas)
        sums = self.problem.workload.sums_before
        needed = model_state_bytes(
            self.problem.workload, self._sum(sums.num_parameters, stage), shared
        )
        needed += held * self._sum(sums.activation_bytes, stage)
        place = self.problem.topology.domains[domain]
        return needed <= tensor * replicas * place.gpu_memory_bytes

    def estimate_s(self, part: _Part) -> float:
        """Sailor's formula. [s]"""
        num_later = self.problem.workload.num_microbatches - 1
        return num_later * part.straggler_s + part.sum_s + part.sync_s

    def plan(self, order: Sequence[int], part: _Part, replicas: int) -> Plan:
        """Return the plan of a part that is all of the pipeline."""
        shares = [Parallelism()] * self.problem.topology.num_domains
        counts, stage = [], 0
        for domain, (num_stages, tensor) in zip(order, part.runs, strict=True):
            shares[domain] = Parallelism(tensor=tensor, data=replicas, pipeline=num_stages)
            counts.append(sum(self.counts[stage : stage + num_stages]))
            stage += num_stages
        return Plan(
            placement=Placement.contiguous(order, counts),
            schedule=self.problem.choices[0],
            parallelism=tuple(shares),
        )


def _best_part(stages: _Stages, order: Order, replicas: int, message_s: np.ndarray) -> _Part | None:
    """Recursion over domain and first stage: the best of all stages over all domains of a list."""
    later: dict[int, _Part] = {
        stages.num_stages: _Part(straggler_s=0.0, sum_s=0.0, sync_s=0.0, runs=())
    }
    for position in reversed(range(len(order))):
        domain = order[position]
        ends_s = (
            float(message_s[domain, order[position - 1]]) if position else 0.0,
            float(message_s[domain, order[position + 1]]) if position + 1 < len(order) else 0.0,
        )
        first_stages = range(position, stages.num_stages) if position else range(1)
        parts = {}
        for first in first_stages:
            best: _Part | None = None
            for run in _runs(stages, domain, first, replicas):
                rest = later.get(first + run[1])
                if rest is None:
                    continue
                part = _with_run(stages, domain, run, ends_s, rest)
                if best is None or stages.estimate_s(part) < stages.estimate_s(best):
                    best = part
            if best is not None:
                parts[first] = best
        later = parts
    return later.get(0)


def _runs(stages: _Stages, domain: int, first: int, replicas: int) -> Iterator[_Run]:
    """Numbers of stages from ``first`` on that a domain can hold, and GPUs for each."""
    num_gpus = stages.problem.topology.domains[domain].num_gpus
    tensor = 1
    for last in range(first, stages.num_stages):
        needed = stages.tensor_of(last, domain, replicas)
        if needed is None:
            return
        tensor, count = max(tensor, needed), last + 1 - first
        if count * tensor * replicas > num_gpus:
            return
        yield first, count, stages.raised(first, count, domain, tensor, replicas), replicas


def _with_run(
    stages: _Stages,
    domain: int,
    run: _Run,
    ends_s: tuple[float, float],
    rest: _Part,
) -> _Part:
    """Put stages in a domain in front of a part.

    ``ends_s`` are the messages to the domains before and behind it.
    """
    before_s, behind_s = ends_s
    first, count, tensor, replicas = run
    straggler_s, sum_s, sync_s = rest.straggler_s, rest.sum_s, rest.sync_s
    shared = Parallelism(tensor=tensor, data=replicas, pipeline=count)
    for stage in range(first, first + count):
        work_s = stages.work_s(stage, domain, tensor, replicas)
        own_sync_s, inside_s = stages.exchanges_s(stage, domain, shared, stage - first)
        gradients_s = inside_s if stage > first else before_s
        activations_s = inside_s if stage + 1 < first + count else behind_s
        straggler_s = max(straggler_s, work_s + max(gradients_s, activations_s))
        sum_s += work_s + gradients_s + activations_s
        sync_s = max(sync_s, own_sync_s)
    return _Part(
        straggler_s=straggler_s, sum_s=sum_s, sync_s=sync_s, runs=((count, tensor), *rest.runs)
    )
