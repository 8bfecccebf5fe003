"""Reasons for a plan: its bottleneck, and iteration times of neighbouring plans."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from agents.decision.depths import DEPTHS
from des import (
    NO_CORRECTIONS,
    Corrections,
    IterationResult,
    Placement,
    Plan,
    Topology,
    Workload,
    check_memory,
)
from des.compiled.simulate import simulate_compiled
from des.costs.memory import InfeasiblePlacementError


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedBorder:
    """Two stages that follow each other, and what an iteration would take with another cut.

    Attributes
    ----------
    above, below
        Domains of the stage before and behind the cut.
    layer_down_s, layer_up_s
        Change of the iteration time if the last layer above moved below, or the first below moved
        above. None where a stage would be left without layers or memory. [s]
    """

    above: str
    below: str
    layer_down_s: float | None
    layer_up_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Bottleneck and borders of a plan.

    Attributes
    ----------
    bottleneck
        The domain (``East``) or link (``East->West``) that is busy longest.
    bottleneck_busy_fraction
        Share of the iteration for which it is.
    transfer_compute_ratio
        R of the borders in use; None without any. See `des.IterationResult`.
    borders
        From the input to the output.
    depth_change_s
        Change of the iteration time under other warm-up depths, by schedule; those that do not
        fit are left out. [s]
    """

    iteration_s: float
    bottleneck: str
    bottleneck_busy_fraction: float
    transfer_compute_ratio: float | None
    borders: tuple[CrossedBorder, ...]
    depth_change_s: dict[str, float]

    def as_dict(self) -> dict[str, object]:
        """Plain content, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The same in sentences."""
        busy = f"busy {100.0 * self.bottleneck_busy_fraction:.0f} % of the time"
        ratio = self.transfer_compute_ratio
        shown = "no border" if ratio is None else f"R = {ratio:.2f}"
        found = [f"{self.iteration_s:.3f} s an iteration; {self.bottleneck} is {busy}; {shown}."]
        for border in self.borders:
            moves = [
                f"one layer {way} {change_s:+.3f} s"
                for way, change_s in (("down", border.layer_down_s), ("up", border.layer_up_s))
                if change_s is not None
            ]
            told = ", ".join(moves) or "no layer can move"
            found.append(f"{border.above} | {border.below}: {told}.")
        for schedule, change_s in self.depth_change_s.items():
            found.append(f"{schedule} instead: {change_s:+.3f} s.")
        return found


def explain(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    schedules: Sequence[str] = DEPTHS,
) -> Explanation:
    """Say what limits a plan of one pipeline, and what moving a border or the depth would change.

    Parameters
    ----------
    topology
        Links standing still: the network as it was when the plan was chosen.
    schedules
        Warm-up depths to compare with.

    Raises
    ------
    ValueError
        If the plan does not match the world, or has several replicas.
    """
    if plan.replicas:
        raise ValueError(
            f"explanation: plan must have one pipeline, got {1 + len(plan.replicas)} replicas"
        )
    result = simulate_compiled(topology, workload, plan, corrections)

    def change_s(other: Plan) -> float | None:
        """Time that another plan takes more; None if it does not fit."""
        try:
            check_memory(topology, workload, other)
        except InfeasiblePlacementError:
            return None
        found_s = simulate_compiled(topology, workload, other, corrections).makespan_s
        return found_s - result.makespan_s

    depths = {
        name: change_s(_changed(plan, plan.placement, name))
        for name in schedules
        if name != plan.schedule
    }
    bottleneck, busy = _bottleneck(result)
    return Explanation(
        iteration_s=result.makespan_s,
        bottleneck=bottleneck,
        bottleneck_busy_fraction=busy,
        transfer_compute_ratio=result.transfer_compute_ratio,
        borders=tuple(_borders(topology, plan, change_s)),
        depth_change_s={name: found for name, found in depths.items() if found is not None},
    )


def _borders(
    topology: Topology, plan: Plan, change_s: Callable[[Plan], float | None]
) -> Iterator[CrossedBorder]:
    stages = plan.placement.stages
    order = [stage.domain for stage in stages]
    for index, (above, below) in enumerate(pairwise(stages)):
        changes: list[float | None] = []
        for step in (-1, 1):  # layers that the upper stage has more
            counts = [stage.num_layers for stage in stages]
            counts[index] += step
            counts[index + 1] -= step
            has_layers = min(counts) >= 1
            other = _changed(plan, Placement.contiguous(order, counts)) if has_layers else None
            changes.append(None if other is None else change_s(other))
        yield CrossedBorder(
            above=topology.domains[above.domain].name,
            below=topology.domains[below.domain].name,
            layer_down_s=changes[0],
            layer_up_s=changes[1],
        )


def _changed(plan: Plan, placement: Placement, schedule: str | None = None) -> Plan:
    return Plan(
        placement=placement,
        schedule=schedule or plan.schedule,
        parallelism=plan.parallelism,
        activation_compression=plan.activation_compression,
    )


def _bottleneck(result: IterationResult) -> tuple[str, float]:
    """Domain or link that is busy longest, and its share of the iteration; the first of equals."""
    busy_s = [(stage.domain, stage.busy_s) for stage in result.stages]
    busy_s += [(f"{link.source}->{link.target}", link.busy_s) for link in result.links]
    name, longest_s = max(busy_s, key=lambda one: one[1])
    return name, longest_s / result.makespan_s
