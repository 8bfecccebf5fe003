"""Result of a run, rank by rank, with spans of nodes, and the error of a run that did not end."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from astra_sim.base.values import dataclass, field
from astra_sim.files.execution_trace import TraceNode


class NodeSpan(NamedTuple):
    """A node from its issue to its completion; a tuple, as there are as many as nodes."""

    node: TraceNode
    start_ns: int
    end_ns: int


new_span: Callable[[tuple[TraceNode, int, int]], NodeSpan] = partial(tuple.__new__, NodeSpan)
"""Make a span of its three values, quicker than a call of the class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineStatistics:
    """Computations of a rank against the roofline: means weighted with their durations."""

    compute_bound_fraction: float
    compute_fraction: float
    """Reached performance over peak performance."""
    memory_fraction: float
    """Reached memory bandwidth over that of the memory."""
    operations_per_byte: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStatistics:
    """Time of a rank by kind; None stands for a line that is not printed."""

    wall_ns: int
    """Latest end of a node."""
    gpu_ns: int | None
    """Time covered by at least one computation; None without any."""
    communication_ns: int | None
    """Time covered by at least one message or collective; None without any."""
    roofline: RooflineStatistics | None

    @property
    def overlap_ns(self) -> int | None:
        """Computation plus communication minus wall time; None if unknown or not positive."""
        if self.gpu_ns is None or self.communication_ns is None:
            return None
        overlap_ns = self.gpu_ns + self.communication_ns - self.wall_ns
        return overlap_ns if overlap_ns > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankResult:
    """One finished rank; ``statistics`` is None where a node had no place in them."""

    rank: int
    finish_cycles: int
    exposed_communication_cycles: int
    statistics: RankStatistics | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A run after its last event."""

    ranks: tuple[RankResult, ...]
    """Finished ranks, in the order in which they finished."""
    num_npus: int
    unfinished: tuple[int, ...]
    num_never_run: int
    """Nodes of all ranks that were not completed."""
    diagnosis: tuple[str, ...]
    """Waiting nodes with their causes, and messages never received; empty if all ran."""
    num_events: int
    spans: tuple[tuple[NodeSpan, ...], ...] = field(repr=False)
    """Completed nodes of each rank, in the order in which they were."""
    lines: tuple[str, ...]
    """Output of the command, without time stamps."""

    @property
    def is_complete(self) -> bool:
        """Whether every rank finished, every node ran and every message was received."""
        return not self.diagnosis


class IncompleteRunError(RuntimeError):
    """A run that is not complete; its diagnosis is the message, ``result`` holds what there is."""

    def __init__(self, result: RunResult) -> None:
        super().__init__("\n".join(result.diagnosis))
        self.result = result
