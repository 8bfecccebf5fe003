"""The doors to what judges plans: simulators, and reference simulators in their place."""

from collections.abc import Callable, Sequence
from typing import Protocol

from des import Corrections, IterationResult, Plan, Topology, Workload

Simulator = Callable[[Topology, Workload, Plan, Corrections], IterationResult]
"""Anything that simulates an iteration as `des.simulate` does: planners ask it, and tasks do."""

CYCLES_PER_S = 1e9
"""A cycle of a reference simulator is a nanosecond."""


class Measured(Protocol):
    """Result of a backend for one iteration."""

    @property
    def makespan_s(self) -> float:
        """Time until the last domain has finished. [s]"""

    @property
    def exposed_s(self) -> Sequence[float]:
        """Exposed communication of each domain: idle time until its last event. [s]"""


class Backend(Protocol):
    """A reference simulator that judges the plans of a task in place of its simulator.

    It sees links that stand still within an iteration. Its ``repr`` is a part of the task's
    fingerprint, and it goes to other processes, so it is a value.
    """

    def prepare(self, topology: Topology, workload: Workload, plan: Plan) -> Callable[[], Measured]:
        """Return what judges one iteration of a plan on the links as they are.

        What cannot be measured is refused with a ValueError, without measuring it; equal cases get
        equal figures.
        """
