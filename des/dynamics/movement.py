"""Links that move while an iteration runs: a stretch of one draw of a law."""

from dataclasses import dataclass

from des.base.checks import require_seed
from des.dynamics.law import Law
from des.dynamics.uniform import UniformLaw

LATEST_START_S = 1e10
"""Three centuries: later, floats no longer tell milliseconds apart."""


def require_moving(owner: str, law: Law) -> None:
    """Refuse the one law that may be drawn once an epoch, where it is."""
    if isinstance(law, UniformLaw) and law.update_interval_s is None:
        raise ValueError(f"{owner}: law.update_interval_s must be given in seconds, got None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """Links that move while an iteration runs: one path of a law, from ``start_s`` of it on."""

    law: Law
    seed: int
    start_s: float = 0.0

    def __post_init__(self) -> None:
        require_moving("movement", self.law)
        require_seed("movement", "seed", self.seed)
        if not 0 <= self.start_s <= LATEST_START_S:
            raise ValueError(
                f"movement: start_s must be from 0 to {LATEST_START_S:g}, got {self.start_s!r}"
            )
