"""References of the targets: one domain, replicas in all domains, and the physical bound."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.decision.families import SYNCHRONOUS
from agents.decision.problem import PlanningProblem
from agents.decision.world import DecisionWorld, equal_work_s
from agents.planners.bounds.job_figures import JobFigures
from agents.planners.rules.data_parallel import data_parallel
from agents.replanning.payoff import undone_by_move
from agents.replanning.plan_costs import Changes
from agents.replanning.search_schedulers import search_plan
from des import (
    NO_CORRECTIONS,
    Placement,
    Plan,
    Topology,
    Workload,
    exposed_communication_s,
)
from des.compiled.simulate import simulate_compiled
from scenarios.study.compare.static_part import bound_of, whole_problem
from scenarios.study.targets.measurement_size import Scope

FEWER_BITS = 2.25
"""A chain saves 25 % over one domain only if its messages fit in 0.75 of 6 N b s / F."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleDomain:
    """The whole job in one domain at a time, as well as that can be done.

    Attributes
    ----------
    domains
        Domain of each epoch.
    total_s
        Time of the work of the draw, moves included, see `agents.decision.world.equal_work_s`. [s]
    fits_memory
        Whether the job fits into each of these domains; where it does not it is judged as if.
    """

    domains: tuple[int, ...]
    total_s: float
    fits_memory: bool


def in_one_domain(domain: int, workload: Workload) -> Plan:
    """Return the plan that has all layers in a domain."""
    return Plan(placement=Placement(domain_of_layer=(domain,) * workload.num_layers))


def best_single_domain(
    world: DecisionWorld, networks: Sequence[Topology], plans: Sequence[Plan]
) -> SingleDomain:
    """Find the quickest way to spend a draw in one domain at a time.

    Parameters
    ----------
    networks
        `agents.decision.frozen_network.freeze_topology` of each epoch of the draw.
    plans
        Plans on one domain each to choose among, one at least.

    Notes
    -----
    A dynamic program that knows the whole draw and pays for its moves, the first place being free:
    no scheduler of single domains can do better, so the comparison is in its favour.
    """
    workload = world.workload
    iteration_s = np.array([iteration_times_s(networks, workload, plan) for plan in plans]).T
    changes = Changes(workload, plans, world.topology.num_domains, world.replacement)
    change_s = np.array([changes.times_s(topology) for topology in networks])
    undone = -world.epoch_s / iteration_s
    path, least = least_path(undone, undone_by_move(change_s, iteration_s))
    clock_s, work = (len(networks) * one for one in (world.epoch_s, world.iterations_per_epoch))
    fits = [
        simulate_compiled(networks[0], workload, plans[at], NO_CORRECTIONS).fits_memory
        for at in sorted(set(path))
    ]
    domains = tuple(plans[at].placement.domain_of_layer[0] for at in path)
    return SingleDomain(
        domains=domains, total_s=equal_work_s(clock_s, work, -least), fits_memory=all(fits)
    )


def least_path(epochs: np.ndarray, changes: np.ndarray) -> tuple[tuple[int, ...], float]:
    """Return the candidates of each epoch that cost least in all, and that cost.

    Parameters
    ----------
    epochs
        Cost of an epoch with each candidate, shaped (E, C).
    changes
        Cost of a change when an epoch begins, shaped (E, C, C): from row to column. That of the
        first epoch is not looked at.

    Examples
    --------
    >>> move = np.array([[[0.0, 1.0], [1.0, 0.0]]] * 3)
    >>> least_path(np.array([[1.0, 2.0], [5.0, 2.0], [2.0, 2.5]]), move)
    ((0, 1, 1), 6.5)
    """
    best = epochs[0].copy()
    came_from = np.zeros(epochs.shape, dtype=np.int64)
    for epoch in range(1, len(epochs)):
        ways = best[:, np.newaxis] + changes[epoch]
        came_from[epoch] = ways.argmin(axis=0)
        best = ways.min(axis=0) + epochs[epoch]
    path = [int(best.argmin())]
    for epoch in range(len(epochs) - 1, 0, -1):
        path.append(int(came_from[epoch, path[-1]]))
    return tuple(reversed(path)), float(best.min())


def data_parallel_plan(topology: Topology, workload: Workload) -> Plan:
    """A full replica in every domain, gradients summed over the WAN after every step."""
    problem = PlanningProblem(topology=topology, workload=workload)
    return data_parallel(problem, np.random.default_rng(0))  # it draws nothing


def best_known_plan(scope: Scope, topology: Topology, workload: Workload) -> Plan:
    """The quickest plan that searches find on a network that stands still.

    Of a trainer that of the search of bound plans or, if it is quicker, the searched plan of
    perfect devices as the trainer runs it.
    """
    plan = search_plan(topology, workload)
    if scope.trainer.is_ideal:
        return plan
    bound = scope.search.quickest(topology, workload)
    other = scope.plan_as_run(PlanningProblem(topology=topology, workload=workload), plan)
    if other is None or bound.step_s <= simulate_compiled(topology, workload, other).makespan_s:
        return bound.plan
    return other


def best_known_s(scope: Scope, topology: Topology, workload: Workload) -> float:
    """Time of an iteration of `best_known_plan`. [s]"""
    plan = best_known_plan(scope, topology, workload)
    return simulate_compiled(topology, workload, plan, NO_CORRECTIONS).makespan_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Communication:
    """Bytes that a plan sends in one iteration, and the time that this adds."""

    cost_bytes: float
    exposed_s: float
    iteration_s: float


def communication_of(topology: Topology, workload: Workload, plan: Plan) -> Communication:
    """Simulate an iteration of a plan on links that stand still."""
    result = simulate_compiled(topology, workload, plan, NO_CORRECTIONS)
    return Communication(
        cost_bytes=result.communication_cost_bytes,
        exposed_s=exposed_communication_s(result, topology, workload, plan),
        iteration_s=result.makespan_s,
    )


def has_shapes(topology: Topology) -> bool:
    """Whether layers take times by their shapes, so that FLOPs over speed say little."""
    return any(one.source_of_layer_times == "shapes" for one in topology.domains)


def physical_bound_s(topology: Topology, workload: Workload) -> float:
    """Time below which no plan can do an iteration: all domains busy all the time. [s]"""
    if has_shapes(topology):
        problem = whole_problem(topology, workload, SYNCHRONOUS)
        return JobFigures.of(problem, workload).work_s
    flops = sum(workload.forward_flops) + sum(workload.backward_flops)
    speed = math.fsum(domain.attainable_flops_per_s for domain in topology.domains)
    return workload.num_microbatches * flops / speed


def iteration_bound_s(topology: Topology, workload: Workload) -> float:
    """Time below which no plan there is to choose can do an iteration. [s]

    Of layers with times by shape, the bound of docs/dev/bounds.md over the families that leave the
    training as it is, in microbatches of any size. Else that of pipelines of one stage per domain:
    one domain computes everything; several are never quicker than all their FLOP/s, nor than the
    quickest link there is lets all activations through.
    """
    if has_shapes(topology):
        bound = bound_of(topology, workload, SYNCHRONOUS)
        return physical_bound_s(topology, workload) if bound is None else bound.step_s
    flops = sum(workload.forward_flops) + sum(workload.backward_flops)
    fastest = max(domain.attainable_flops_per_s for domain in topology.domains)
    alone_s = workload.num_microbatches * flops / fastest
    if not topology.links:
        return alone_s
    bandwidth = max(link.bandwidth_bytes_per_s for link in topology.links)
    wire_s = workload.num_microbatches * workload.message_bytes / bandwidth
    return min(alone_s, max(physical_bound_s(topology, workload), wire_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainBound:
    """Whether a chain of domains can save a quarter of the time of one domain at all.

    Attributes
    ----------
    parameters_per_hidden
        N / h of the job, with ``h`` from its message of two bytes a value.
    needed
        ``F / (2.25 B)`` for the quickest domain and the quickest link, in the chain's favour.
    """

    parameters_per_hidden: float
    needed: float

    @property
    def allows_a_quarter(self) -> bool:
        """Whether messages leave room for 25 %."""
        return self.parameters_per_hidden >= self.needed

    @property
    def room(self) -> float:
        """Ratio of the parameters per hidden size to those needed."""
        return self.parameters_per_hidden / self.needed

    def __str__(self) -> str:
        sign = ">=" if self.allows_a_quarter else "<"
        return f"N/h {self.parameters_per_hidden:.3g} {sign} F/(2.25 B) {self.needed:.3g}"


def chain_bound(topology: Topology, workload: Workload) -> ChainBound:
    """Work out ``N/h`` and ``F / (2.25 B)`` of a case.

    Raises
    ------
    ValueError
        If there are no links or no messages, so that there is no chain to bound.
    """
    if not topology.links or not workload.message_bytes:
        raise ValueError(
            f"chain bound: the case must have links and messages, got {len(topology.links)} links "
            f"and messages of {workload.message_bytes!r} bytes"
        )
    hidden = workload.message_bytes / (2 * workload.tokens_per_microbatch)
    speed = max(domain.attainable_flops_per_s for domain in topology.domains)
    bandwidth = max(link.bandwidth_bytes_per_s for link in topology.links)
    return ChainBound(
        parameters_per_hidden=sum(workload.num_parameters) / hidden,
        needed=speed / (FEWER_BITS * bandwidth),
    )


def iteration_times_s(networks: Sequence[Topology], workload: Workload, plan: Plan) -> np.ndarray:
    """Iteration time of one plan on the networks of some epochs, shaped (epochs,). [s]"""
    return np.array([simulate_compiled(one, workload, plan).makespan_s for one in networks])


def held_work_s(world: DecisionWorld, iteration_s: Sequence[float] | np.ndarray) -> float:
    """Time of the work of epochs by the clock, with iterations that take so long in each. [s]"""
    count = len(iteration_s)
    done = float((world.epoch_s / np.asarray(iteration_s)).sum())
    return equal_work_s(count * world.epoch_s, count * world.iterations_per_epoch, done)
