"""An epoch of a plan: what it costs to change to it, then a number of iterations."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from des.base.checks import MOST_ITEMS, require_count
from des.engine.result import IterationResult
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.learners import require_one_clock
from des.plan.plan import Plan
from des.plan.replacement import RESTART_S
from des.plan.synchronisation import EVERY_STEP
from des.program.moves import missing_states
from des.simulation.iteration import simulate
from des.simulation.migration import migration_s
from des.world.topology import Topology


@dataclass(frozen=True, kw_only=True)
class EpochResult:
    """Outcome of one epoch: the change of plan, if any, and the iterations after it.

    Figures of the epoch are means per iteration that bear the change as well.

    Attributes
    ----------
    migration_s
        Time for which the training stood still to change its plan. [s]
    moved_bytes
        Model state that was sent for it, however many links its routes have.
    duration_s
        ``migration_s`` and all makespans, added in order. [s]
    utilisation
        Useful FLOPs over the peak of *all* GPUs of all domains times ``duration_s``.
    """

    migration_s: float
    moved_bytes: float
    duration_s: float
    utilisation: float
    iterations: tuple[IterationResult, ...]

    @property
    def num_iterations(self) -> int:
        """Number of iterations, at least one."""
        return len(self.iterations)

    @property
    def iteration_time_s(self) -> float:
        """Time per iteration. [s]"""
        return self.duration_s / self.num_iterations

    @cached_property
    def communication_cost_bytes(self) -> float:
        """Communication cost per iteration, see `IterationResult`; moved bytes count once each."""
        num_bytes = 0.0
        for iteration in self.iterations:
            num_bytes += iteration.communication_cost_bytes
        return (num_bytes + self.moved_bytes) / self.num_iterations

    @cached_property
    def bubble_fraction(self) -> float:
        """Share of the time that the devices in use stand idle."""
        num_used = len({(stage.domain, stage.device) for stage in self.iterations[0].stages})
        busy_s = 0.0
        for iteration in self.iterations:
            busy_s += sum(stage.busy_s for stage in iteration.stages)
        return 1.0 - busy_s / (num_used * self.duration_s)

    @cached_property
    def memory_overflow_fraction(self) -> float:
        """Largest memory overflow of a domain in an iteration, as a fraction of its memory."""
        return max(
            memory.overflow_fraction for iteration in self.iterations for memory in iteration.memory
        )

    @cached_property
    def fits_memory(self) -> bool:
        """Whether every domain has the memory that the plan needs in all iterations."""
        return all(iteration.fits_memory for iteration in self.iterations)


def simulate_epoch(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    *,
    num_iterations: int = 1,
    previous: Plan | None = None,
    restart_s: float = RESTART_S,
    pays_bytes: bool = True,
    corrections: Corrections = NO_CORRECTIONS,
    first_step: int = 0,
    simulator: Callable[..., IterationResult] = simulate,
) -> EpochResult:
    """Change to a plan and do a number of iterations, one right after the other.

    The change begins at time 0 of the topology, and iteration ``i`` runs on the links as they are
    when it starts. Where neither the links nor what replicas exchange change from one to the next,
    one simulation stands for all.

    Parameters
    ----------
    previous
        Plan in force before; None if there is nothing to change from.
    restart_s, pays_bytes
        Price of a change, see `des.simulation.migration.migration_s`.
    first_step
        Position of the first iteration in the training, see `des.simulation.iteration.simulate`.
    simulator
        Simulator of an iteration, called with topology, workload, plan and corrections, and for a
        plan of several replicas with ``step``.

    Raises
    ------
    ValueError
        If a count is out of range, or as `des.simulation.migration.migration_s` and ``simulator``.

    Examples
    --------
    >>> from des import Placement, build_workload, read_topology
    >>> world, job = read_topology("east_central_west"), build_workload("llama2_7b")
    >>> alone, split = (
    ...     Plan(placement=Placement.parse(text)) for text in ("0*32", "0*16,1*16")
    ... )
    >>> epoch = simulate_epoch(world, job, split, num_iterations=10, previous=alone)
    >>> round(epoch.moved_bytes / 1e9, 1)
    53.9
    """
    require_count("epoch", "num_iterations", num_iterations, MOST_ITEMS)
    require_one_clock("epoch", plan)
    if isinstance(first_step, bool) or not isinstance(first_step, int) or first_step < 0:
        raise ValueError(
            f"epoch: first_step must be a whole number of at least 0, got {first_step!r}"
        )
    change_s = num_bytes = 0.0
    if previous is not None:
        change_s, num_bytes = change_of_plan(
            topology,
            workload,
            previous,
            plan,
            corrections,
            restart_s=restart_s,
            pays_bytes=pays_bytes,
        )
    now_s = change_s
    iterations: list[IterationResult] = []
    exchanges_alike = not plan.replicas or plan.synchronisation == EVERY_STEP
    all_are_equal = topology.movement is None and exchanges_alike
    for index in range(num_iterations):
        if index == 0 or not all_are_equal:
            step = {"step": first_step + index} if plan.replicas else {}
            result = simulator(topology.later(now_s), workload, plan, corrections, **step)
        iterations.append(result)
        now_s += result.makespan_s
    num_flops = num_iterations * workload.flops_per_iteration
    return EpochResult(
        migration_s=change_s,
        moved_bytes=num_bytes,
        duration_s=now_s,
        utilisation=num_flops / (topology.peak_flops_per_s * now_s),
        iterations=tuple(iterations),
    )


def change_of_plan(
    topology: Topology,
    workload: Workload,
    old: Plan,
    new: Plan,
    corrections: Corrections,
    *,
    restart_s: float,
    pays_bytes: bool,
) -> tuple[float, float]:
    """Time [s] that a change of plan takes, and bytes that it moves."""
    took_s = migration_s(
        topology,
        workload,
        old,
        new,
        restart_s=restart_s,
        pays_bytes=pays_bytes,
        corrections=corrections,
    )
    num_bytes = 0.0
    if pays_bytes:
        for state in missing_states(workload, old, new):
            num_bytes += state.num_bytes
    return took_s, num_bytes
