"""Mean steps of plans over a period of their synchronisation: time, and bytes over the WAN.

The rules are those of `des.training.training_run` on links that stand still: a step waits for the
exchanges that are due in it; one that continues after steps waits for those before it, then has
the links to itself, and steps wait for a late one. The second period counts; nothing is under way
when the first begins.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.decision.simulator import Simulator
from agents.judge.learner_steps import learner_paces
from des import NO_CORRECTIONS, Corrections, Plan, Topology, Workload, simulate, simulate_epoch
from des.base.jit import kernel
from des.compiled.many.each import NetworkFigures, simulate_each
from des.compiled.many.job import DomainFigures
from des.compiled.many.layout import Real, Whole
from des.compiled.many.simulation import exchanges_behind_s, simulate_many
from des.compiled.simulate import simulate_compiled
from des.job.transformer import WEIGHT_BYTES
from des.plan.buckets import bits_on_wire
from des.plan.learners import has_own_clocks, require_one_clock
from des.plan.synchronisation import Synchronisation, agree_every_step


class _Steps(NamedTuple):
    """Steps of plans to simulate: position of the plan, and step in its period."""

    plans: list[int]
    steps: list[int]

    def add(self, plan: int, *steps: int) -> None:
        self.plans.extend([plan] * len(steps))
        self.steps.extend(steps)


def step_times_s(
    topology: Topology,
    workload: Workload,
    plans: Sequence[Plan],
    corrections: Corrections = NO_CORRECTIONS,
    *,
    simulator: Simulator = simulate,
) -> Real:
    """Times of a step of plans, mean over a period of the synchronisation, (P,). [s]

    Those of a single pipeline, and of replicas that exchange after every step, are iterations.

    Parameters
    ----------
    simulator
        Simulator of the steps; where it is that of `des`, all are simulated side by side.

    Raises
    ------
    ValueError
        If links move within an iteration, or a plan does not match the topology or the workload.

    Examples
    --------
    >>> from des import DiLoCo, Placement, build_workload, read_topology
    >>> world, job = read_topology("four_uneven"), build_workload("llama2_7b", num_layers=4)
    >>> east, west = (Placement.contiguous([domain], [4]) for domain in (0, 1))
    >>> rare = Plan(placement=east, replicas=(west,), synchronisation=DiLoCo(steps_between=500))
    >>> often = Plan(placement=east, replicas=(west,))
    >>> rare_s, often_s = step_times_s(world, job, [rare, often])
    >>> bool(rare_s < often_s)
    True
    """
    times_s: Real = step_times_on([topology], workload, plans, corrections, simulator=simulator)[0]
    return times_s


def step_times_on(
    topologies: Sequence[Topology],
    workload: Workload,
    plans: Sequence[Plan],
    corrections: Corrections = NO_CORRECTIONS,
    *,
    simulator: Simulator = simulate,
) -> Real:
    """Times of a step of plans on each of some networks, (T, P), see `step_times_s`. [s]

    Plans are written down once for all networks.
    """
    if any(topology.movement is not None for topology in topologies):
        raise ValueError("step times: topology must stand still; give topology.at_start()")
    plain, waited, behind = _sort_steps(workload, plans)
    both = _Steps(plain.plans + waited.plans, plain.steps + waited.steps)
    own_s = _simulated_s(topologies, workload, plans, both, corrections, simulator)
    exchanging = [plans[each] for each in behind.plans]
    times_s = np.zeros((len(topologies), len(plans)))
    for row, topology in enumerate(topologies):
        behind_s = exchanges_behind_s(topology, workload, exchanging, behind.steps, corrections)
        times_s[row, plain.plans] = own_s[row, : len(plain.plans)]
        _close(plans, times_s[row], waited, own_s[row, len(plain.plans) :])
        _close(plans, times_s[row], behind, behind_s)
    for column, plan in enumerate(plans):
        if has_own_clocks(plan):
            if simulator not in (simulate, simulate_compiled):
                require_one_clock("step times of another simulator", plan)
            paces = learner_paces(topologies, workload, plan, corrections)
            times_s[:, column] = [one.step_s for one in paces]
    return times_s


def step_times_each(
    networks: NetworkFigures,
    common: DomainFigures,
    workload: Workload,
    plans: Sequence[Plan],
    corrections: Corrections = NO_CORRECTIONS,
) -> Real:
    """Times of a step of plan ``n`` on network ``n``, (N,), see `step_times_s`. [s]

    Raises
    ------
    ValueError
        If `des.compiled.many.each.simulate_each` cannot take a plan, or learners of one do not
        wait for all.
    """
    for plan in plans:
        require_one_clock("step times", plan)
    plain, waited, behind = _sort_steps(workload, plans)
    both = _Steps(plain.plans + waited.plans, plain.steps + waited.steps)
    own_s, behind_s = (
        simulate_each(
            networks.rows(np.array(each.plans, dtype=np.int64)),
            common,
            workload,
            [plans[one] for one in each.plans],
            corrections,
            steps=each.steps,
            is_behind=is_behind,
        )
        for each, is_behind in ((both, False), (behind, True))
    )
    times_s = np.zeros(len(plans))
    times_s[plain.plans] = own_s[: len(plain.plans)]
    _close(plans, times_s, waited, own_s[len(plain.plans) :])
    _close(plans, times_s, behind, behind_s)
    return times_s


def mean_step(
    topology: Topology, workload: Workload, plan: Plan, corrections: Corrections
) -> tuple[float, float]:
    """Mean time [s] and WAN bytes of a step of a plan whose copies seldom exchange.

    It is a `agents.decision.run_epochs.MeanStep`.
    """
    if has_own_clocks(plan):
        paces = learner_paces([topology], workload, plan, corrections)[0]
        crossings, message_bytes, exchange_bytes = _sent(workload, plan)
        own_bytes = float(crossings @ paces.learner_steps) * message_bytes
        return paces.step_s, own_bytes + exchange_bytes * paces.num_merges
    step_s = step_times_s(topology, workload, [plan], corrections, simulator=simulate_compiled)
    return float(step_s[0]), float(step_wan_bytes(workload, [plan])[0])


def _sort_steps(workload: Workload, plans: Sequence[Plan]) -> tuple[_Steps, _Steps, _Steps]:
    """Steps without an exchange, those that wait for one, and those with one behind them."""
    plain, waited, behind = _Steps([], []), _Steps([], []), _Steps([], [])
    due_steps: dict[int, tuple[int, ...]] = {}
    for number, plan in enumerate(plans):
        mode = plan.synchronisation
        if has_own_clocks(plan):
            continue
        if not plan.replicas or agree_every_step(mode):
            plain.add(number, 0)
            continue
        if id(mode) not in due_steps:
            due_steps[id(mode)] = _due_steps(mode, workload.num_layers)
        due = due_steps[id(mode)]
        (behind if mode.overlap_steps > 0 else waited).add(number, *due)
        if mode.overlap_steps > 0:
            plain.add(number, 0)
        elif len(due) < mode.steps_between:
            plain.add(number, _first_free(due))
    return plain, waited, behind


def step_wan_bytes(workload: Workload, plans: Sequence[Plan]) -> Real:
    """Bytes that leave a domain in a step, mean over a period of the synchronisation, (P,).

    Activations, their gradients, and the exchanges of the replicas. Each counts once, however many
    links its route has.
    """
    found = np.zeros(len(plans))
    for row, plan in enumerate(plans):
        crossings, message_bytes, exchange_bytes = _sent(workload, plan)
        found[row] = float(crossings.sum()) * message_bytes
        found[row] += exchange_bytes / plan.synchronisation.steps_between
    return found


def _sent(workload: Workload, plan: Plan) -> tuple[Real, float, float]:
    """Messages of each pipeline between domains in a step, (R,), their bytes, and an exchange's."""
    domains = np.array([one.domain_of_layer for one in plan.placements])
    num_replicas = len(domains)
    shares = np.array(plan.microbatches_of_replicas(workload.num_microbatches))
    borders = (domains[:, 1:] != domains[:, :-1]).sum(axis=1)
    crossings = 2.0 * (borders * shares)
    message_bytes = workload.message_bytes / plan.activation_compression
    if num_replicas == 1:
        return crossings, message_bytes, 0.0
    others, factor = np.roll(domains, 1, axis=0), 2.0 * (num_replicas - 1) / num_replicas
    if plan.exchange.tree:
        others, factor = domains[[0, *plan.exchange.tree]], 2.0
    num_hops = (domains != others).sum(axis=0)
    bits = bits_on_wire(workload, plan.synchronisation)
    if plan.exchange.sharded:
        bits = (bits + 8.0 * WEIGHT_BYTES) / 2.0  # gradients there, new weights back
    whole_bytes = float(num_hops @ np.array(workload.num_parameters)) * bits / 8.0
    return crossings, message_bytes, factor * whole_bytes


def _due_steps(mode: Synchronisation, num_layers: int) -> tuple[int, ...]:
    """Steps of a period in which an exchange is due, from 0."""
    return tuple(sorted({one.due_step - 1 for one in mode.fragments(num_layers)}))


def _first_free(due: Sequence[int]) -> int:
    """First step in which nothing is due."""
    return next(step for step, each in enumerate((*due, -1)) if step != each)


def _simulated_s(
    topologies: Sequence[Topology],
    workload: Workload,
    plans: Sequence[Plan],
    steps: _Steps,
    corrections: Corrections,
    simulator: Simulator,
) -> Real:
    """Time of each step on each network, with the exchanges that it waits for. [s]"""
    chosen = [plans[each] for each in steps.plans]
    if simulator in (simulate, simulate_compiled):
        return simulate_many(topologies, workload, chosen, corrections, steps=steps.steps)
    epochs = [
        simulate_epoch(
            topology, workload, plan, corrections=corrections, first_step=step, simulator=simulator
        )
        for topology in topologies
        for plan, step in zip(chosen, steps.steps, strict=True)
    ]
    return np.array([epoch.duration_s for epoch in epochs]).reshape(len(topologies), len(chosen))


def _close(plans: Sequence[Plan], times_s: Real, due: _Steps, due_s: Real) -> None:
    """Replace times of plain steps by means over the second of two periods."""
    if not due.plans:
        return
    steps = np.array(due.steps, dtype=np.int64)
    owners = np.array(due.plans)
    firsts = np.flatnonzero(np.diff(owners, prepend=-1))
    for first, end in zip(firsts.tolist(), [*firsts[1:].tolist(), len(owners)], strict=True):
        mode = plans[owners[first]].synchronisation
        times_s[owners[first]] = _mean_step_s(
            times_s[owners[first]],
            steps[first:end],
            due_s[first:end],
            mode.steps_between,
            mode.overlap_steps,
        )


@kernel
def _mean_step_s(
    plain_s: float, due: Whole, due_s: Real, steps_between: int, overlap_steps: int
) -> float:
    """Mean step over the second of two periods; exchanges of due steps take ``due_s``. [s]"""
    size = due.size
    end_s = np.empty(2 * size)
    now_s = free_s = first_period_s = 0.0
    begun = ended = 0
    for step in range(2 * steps_between):
        if step == steps_between:
            first_period_s = now_s
        is_due = due[begun % size] == step % steps_between
        if is_due and overlap_steps == 0:
            now_s += due_s[begun % size]
            begun = ended = begun + 1
            continue
        now_s += plain_s
        if is_due:
            free_s = max(now_s, free_s) + due_s[begun % size]
            end_s[begun] = free_s
            begun += 1
        while ended < begun:
            behind = due[ended % size] + ended // size * steps_between
            if behind + overlap_steps > step:
                break
            now_s = max(now_s, end_s[ended])
            ended += 1
    return (now_s - first_period_s) / steps_between
