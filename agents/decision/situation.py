"""Situation that a scheduler sees when it decides, and its decision."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from agents.decision.levels import MoveLevel
from agents.decision.problem import require_planned_domains
from des import NO_CORRECTIONS, Corrections, Plan, Topology, Workload
from des.base.checks import require_non_negative
from des.compiled.many.layout import Real
from des.plan.replacement import Replacement
from des.world.domain_load import DomainLoad

Amount = TypeVar("Amount", float, Real)
"""A number, or an array of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """Weights of time, utilisation and communication cost; they add up to 1."""

    time: float = 1.0
    utilisation: float = 0.0
    communication: float = 0.0

    def __post_init__(self) -> None:
        weights = (self.time, self.utilisation, self.communication)
        for name, weight in zip(("time", "utilisation", "communication"), weights, strict=True):
            require_non_negative("preference", name, weight)
        if abs(sum(weights) - 1.0) > 1e-9:
            raise ValueError(f"preference: weights must add up to 1, got {weights!r}")

    def value(self, speed: Amount, utilisation: Amount, sent: Amount) -> Amount:
        """``R = w1 R_eff + w2 U - w3 C``, of numbers or arrays without units.

        Parameters
        ----------
        speed
            Iterations over those of a reference plan in the same time.
        utilisation
            Useful FLOPs over the peak of the GPUs that are counted.
        sent
            Bytes over links as a part of those of a reference plan.

        Examples
        --------
        >>> Preference(time=0.5, utilisation=0.25, communication=0.25).value(1.0, 0.5, 1.0)
        0.375
        """
        return self.time * speed + self.utilisation * utilisation - self.communication * sent


TIME_ONLY = Preference()
"""Nothing counts but time (and so utilisation, where all domains' GPUs are counted)."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """One decision: the network as it is now, where the layers are, and what a move costs.

    Attributes
    ----------
    topology
        Links standing still at their present figures; speeds of the domains under their load.
    base
        The same domains and links at base figures.
    last_plan
        The plan in force; None before the first decision, which costs nothing.
    loads
        One a domain; none given means that only the speeds are known. The speeds in
        ``topology`` are what the loads leave already, its memory is not.
    """

    topology: Topology
    base: Topology
    workload: Workload
    epoch: int
    epoch_s: float
    replacement: Replacement
    last_plan: Plan | None = None
    loads: tuple[DomainLoad, ...] = ()
    preference: Preference = TIME_ONLY
    corrections: Corrections = NO_CORRECTIONS

    def __post_init__(self) -> None:
        require_planned_domains("situation", self.topology)
        if self.topology.movement is not None:
            raise ValueError("situation: topology must stand still; give topology.at_start()")
        if self.loads and len(self.loads) != self.topology.num_domains:
            raise ValueError(
                f"situation: loads must hold one for each of {self.topology.num_domains} domains, "
                f"got {len(self.loads)}"
            )


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A plan for the epoch.

    Attributes
    ----------
    level
        Level of the change from the last plan; ``order`` for the first one.
    is_fallback
        Whether the scheduler's own plan was not valid, so that the last valid one stays.
    response_s
        Wall time by part of the scheduler, such as ``inter_domain`` and ``intra_domain``. [s]
    """

    plan: Plan
    level: MoveLevel
    is_fallback: bool = False
    response_s: dict[str, float] = field(default_factory=dict)


class Scheduler(Protocol):
    """Decides epoch after epoch; it may remember what it saw since `begin`."""

    def begin(self) -> None:
        """Forget what was seen: another draw begins."""

    def decide(self, situation: Situation) -> Decision:
        """Return the plan for the epoch."""


MakeScheduler = Callable[[], Scheduler]
"""Makes a scheduler that has seen nothing."""
