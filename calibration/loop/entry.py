"""A calibration that is over, as it is logged, printed and kept in checkpoints."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from calibration.loop.rounds import CalibrationRound, Kind, Order
from des.plan.corrections import FACTORS, NO_CORRECTIONS, Corrections

WALL_CLOCK_COLUMNS = ("waited_s",)
"""Columns of `Entry.row` that measure this machine; the others repeat to the last bit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Log entry of one calibration.

    Parameters
    ----------
    number, kind, cause
        Number of the calibration, its kind, and its cause.
    ordered_at_step, in_force_from_step
        Steps of training done when it was ordered, and when its factors took effect.
    num_placements
        Number of its placements.
    error_before, p95_before
        Mean absolute relative error of the iteration time under the factors that were in force, and
        the one that 95 % of the placements do not exceed.
    error_after, p95_after
        The same under ``corrections``, held out where these were fitted.
    kendall_tau
        Agreement of ranks under ``corrections``; None where all iterations take as long.
    is_changed
        Whether ``corrections`` are others than those that were in force.
    is_drift
        Whether a probe found an error above the bound.
    corrections, reason
        The factors from then on, and why these.
    waited_s
        Time that training waited for it; None where that is unknown. [s]
    """

    number: int
    kind: Kind
    cause: str
    ordered_at_step: int
    in_force_from_step: int
    num_placements: int
    error_before: float
    p95_before: float
    error_after: float
    p95_after: float
    kendall_tau: float | None
    is_changed: bool
    is_drift: bool
    corrections: Corrections
    reason: str
    waited_s: float | None = None

    @classmethod
    def of(
        cls,
        found: CalibrationRound,
        order: Order,
        *,
        cause: str,
        ordered_at_step: int,
        in_force_from_step: int,
        bound: float,
    ) -> Self:
        """Put together what was ordered and what was found."""
        before, after = found.before, found.after
        return cls(
            number=order.number,
            kind=order.kind,
            cause=cause,
            ordered_at_step=ordered_at_step,
            in_force_from_step=in_force_from_step,
            num_placements=found.num_cases,
            error_before=before.mean,
            p95_before=before.p95,
            error_after=after.mean,
            p95_after=after.p95,
            kendall_tau=after.kendall_tau,
            is_changed=found.corrections != order.in_force,
            is_drift=order.kind == "probe" and after.mean > bound,
            corrections=found.corrections,
            reason=found.reason,
        )

    def plain(self) -> dict[str, object]:
        """Return plain content for a checkpoint, without what the clock says."""
        content = asdict(self) | {"corrections": self.corrections.plain()}
        del content["waited_s"]
        return content

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> Self:
        """Make an entry of what `plain` returned."""
        return cls(**{**content, "corrections": Corrections.from_plain(content["corrections"])})

    def row(self) -> dict[str, object]:
        """Return the entry as a row of a table, factors in columns of their own."""
        content = asdict(self)
        del content["corrections"]
        factors, waited_s = self.corrections.plain(), content.pop("waited_s")
        law = factors.pop("transport", None)
        if law is not None:
            factors |= {f"transport_{name}": value for name, value in law.items()}
        return {**content, **factors, "waited_s": waited_s}

    def line(self) -> str:
        """Tell of it in one line."""
        errors = f"error of iteration time {percent_text(self.error_before)} mean"
        errors += f", {percent_text(self.p95_before)} p95"
        if self.is_changed:
            errors += (
                f" -> {percent_text(self.error_after)}, {percent_text(self.p95_after)} held out"
            )
        when = (
            f"from step {self.in_force_from_step:,}" if self.in_force_from_step else "from step 0"
        )
        factors = factors_text(self.corrections)
        verdict = f"{factors} {when}" if self.is_changed else f"{factors}, unchanged"
        waited_s = self.waited_s or 0.0
        waited = f"; waited {waited_s:.1f} s" if waited_s >= LEAST_WAIT_S else ""
        drift = ", which is drift" if self.is_drift else ""
        what = "Calibration" if self.kind == "fit" else "Probe"
        return (
            f"{what} {self.number}, {self.cause}: {self.num_placements} placements, "
            f"{errors}{drift}; {verdict}{waited}"
        )


LEAST_WAIT_S = 0.05
"""Shorter waits are not worth telling."""


def factors_text(corrections: Corrections) -> str:
    """Name the factors that are not 1, with their values.

    Examples
    --------
    >>> factors_text(NO_CORRECTIONS)
    'all factors 1'
    >>> factors_text(Corrections(wan_latency_factor=1.25))
    'wan_latency_factor 1.25'
    """
    shown = [
        f"{name} {getattr(corrections, name):.6g}"
        for name in FACTORS
        if getattr(corrections, name) != getattr(NO_CORRECTIONS, name)
    ]
    if corrections.transport is not None:
        shown.append(f"start-up and losses of {corrections.transport.connections} connections")
    return ", ".join(shown) or "all factors 1"


def percent_text(error: float) -> str:
    """Show an error, the smallest ones as such."""
    return f"{error:.2%}" if error >= 5e-5 else "< 0.01 %"
