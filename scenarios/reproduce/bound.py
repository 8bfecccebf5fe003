"""Verdicts of reproductions: bounds stated beforehand, and stricter targets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A bound stated beforehand, what came, and whether it is met.

    ``target`` is a stricter aim than the bound, where there is one. A target that is missed is
    said, and does not fail the reproduction.
    """

    name: str
    measured: str
    allowed: str
    met: bool
    target: str = ""
    target_met: bool = True

    @classmethod
    def at_least(
        cls,
        name: str,
        measured: float,
        allowed: float,
        *,
        recorded: float | None = None,
        shown: str = ".4g",
    ) -> Bound:
        """Make a bound from below; ``shown`` is the format of all numbers. NaN fails it.

        With a lower figure on record, ``recorded``, that is the bound and ``allowed`` the target.

        Examples
        --------
        >>> Bound.at_least("cells within a grid step", 0.95, 0.9, shown=".1%").line
        'met: cells within a grid step: 95.0%, allowed at least 90.0%'
        """
        bound = allowed if recorded is None else min(allowed, recorded)
        return cls._of(name, "at least", measured, bound, allowed, sign=1.0, shown=shown)

    @classmethod
    def at_most(
        cls,
        name: str,
        measured: float,
        allowed: float,
        *,
        recorded: float | None = None,
        shown: str = ".4g",
    ) -> Bound:
        """Make a bound from above; ``shown`` is the format of all numbers. NaN fails it.

        With a higher figure on record, ``recorded``, that is the bound and ``allowed`` the target.

        Examples
        --------
        >>> Bound.at_most("mean error", 0.08, 0.07, shown=".1%").line
        'FAILED: mean error: 8.0%, allowed at most 7.0%'
        >>> Bound.at_most("mean error", 0.08, 0.07, recorded=0.085, shown=".1%").line
        'TARGET MISSED: mean error: 8.0%, target at most 7.0%, allowed at most 8.5%'
        """
        bound = allowed if recorded is None else max(allowed, recorded)
        return cls._of(name, "at most", measured, bound, allowed, sign=-1.0, shown=shown)

    @classmethod
    def _of(
        cls,
        name: str,
        sense: str,
        measured: float,
        bound: float,
        target: float,
        *,
        sign: float,
        shown: str,
    ) -> Bound:
        return cls(
            name=name,
            measured=format(measured, shown),
            allowed=f"{sense} {bound:{shown}}",
            met=bool(sign * measured >= sign * bound),
            target=f"{sense} {target:{shown}}" if bound != target else "",
            target_met=bool(sign * measured >= sign * target),
        )

    @property
    def line(self) -> str:
        """The verdict in one line."""
        verdict = "FAILED" if not self.met else "met" if self.target_met else "TARGET MISSED"
        target = f"target {self.target}, " if self.target else ""
        return f"{verdict}: {self.name}: {self.measured}, {target}allowed {self.allowed}"

    @property
    def style(self) -> str:
        """Colour of the verdict in a terminal."""
        return "green" if self.met and self.target_met else "bold red"
