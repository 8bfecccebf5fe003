"""The space of plans that a decision may choose from, as a value."""

import math
from dataclasses import dataclass

from agents.decision.depths import DEPTHS
from agents.decision.families import FAMILIES, SYNCHRONOUS, Family
from des import EVERY_STEP, DiLoCo, StreamingDiLoCo
from des.base.checks import require_count, require_positive
from des.plan.synchronisation import Synchronisation
from des.schedules import has_pace, require_quick

HALVED_SCHEDULES = ("zb_h1", "zb_h1_2x", "zb_h1_4x", "zb_h1_8x", "zb_h1_32x", "zb_auto")
"""Schedules of halved backward passes."""

SPACE_MICROBATCH_SIZES = (1, 2, 4, 8)
"""Sequences of a microbatch to choose from, of those that divide a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSpace:
    """The plans that are allowed.

    Attributes
    ----------
    families
        By default those that leave the arithmetic of training unchanged.
    schedules
        Of pipelines; of equal plans the one under the first is kept.
    microbatch_sizes
        Sequences of a microbatch; those that do not divide the step's are left out.
    compressions
        Factors by which messages between stages may shrink; 1 leaves them as they are, others
        change the training.
    period_steps
        Steps between two exchanges of a parameter in `diloco` and `streaming_diloco`.
    bits
        Bits of a value that these two exchange.
    overlap_steps
        Whole steps that hide an exchange of `streaming_diloco`.
    """

    families: tuple[Family, ...] = SYNCHRONOUS
    schedules: tuple[str, ...] = (*DEPTHS, *HALVED_SCHEDULES)
    microbatch_sizes: tuple[int, ...] = SPACE_MICROBATCH_SIZES
    compressions: tuple[float, ...] = (1.0,)
    period_steps: int = 100
    bits: tuple[float, ...] = (16.0, 4.0)
    overlap_steps: int = 1

    def __post_init__(self) -> None:
        for field in ("families", "schedules", "microbatch_sizes", "compressions", "bits"):
            value = getattr(self, field)
            if not value or len(set(value)) < len(value):
                raise ValueError(
                    f"plan space: {field} must be one or more, each once, got {value!r}"
                )
        for family in self.families:
            if family not in FAMILIES:
                raise ValueError(
                    f"plan space: families must be some of {', '.join(FAMILIES)}; got {family!r}"
                )
        for name in self.schedules:
            require_quick("plan space", name)
        if not any(has_pace(name) for name in self.schedules):
            paced = ", ".join(name for name in (*DEPTHS, *HALVED_SCHEDULES) if has_pace(name))
            raise ValueError(
                f"plan space: schedules must hold one with a pace, such as {paced}; "
                f"got {', '.join(self.schedules)}"
            )
        for size in self.microbatch_sizes:
            require_count("plan space", "microbatch_sizes", size)
        for factor in self.compressions:
            if not 1.0 <= factor < math.inf:
                raise ValueError(
                    f"plan space: compressions must be at least 1 and finite, got {factor!r}"
                )
        require_count("plan space", "period_steps", self.period_steps)
        require_count("plan space", "overlap_steps", self.overlap_steps)
        for width in self.bits:
            require_positive("plan space", "bits", width)

    @property
    def outer_modes(self) -> tuple[Synchronisation, ...]:
        """Ways to keep replicas in step that exchange after a number of steps."""
        return (*self.modes("diloco"), *self.modes("streaming_diloco"))

    def modes(self, family: Family) -> tuple[Synchronisation, ...]:
        """Ways to keep the replicas of a family in step."""
        if family == "diloco":
            return tuple(
                DiLoCo(steps_between=self.period_steps, bits_per_value=width) for width in self.bits
            )
        if family == "streaming_diloco":
            return tuple(
                StreamingDiLoCo(
                    steps_between=self.period_steps,
                    bits_per_value=width,
                    overlap_steps=self.overlap_steps,
                )
                for width in self.bits
            )
        return (EVERY_STEP,)
