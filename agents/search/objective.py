"""Objectives of a decision: time, cost, or weights of speed, utilisation and bytes; and a limit."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agents.decision.situation import TIME_ONLY, Preference
from des import Topology

Kind = Literal["time", "cost", "weights"]
"""Shortest step, cheapest step, or the weighted sum of `PlanObjective`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFigures:
    """Figures that plans are compared by.

    Attributes
    ----------
    utilisation
        Useful FLOPs over the peak of all GPUs of the sites in use.
    memory_fraction
        Share of the memory that the fullest site uses.
    usd
        Cost of a step: hours of all GPUs of the sites in use, and bytes over links; None where the
        world has no prices. [USD]
    token_factor
        Tokens, and so steps, that the training needs over those of unchanged training.
    """

    step_s: float
    utilisation: float
    wan_bytes: float
    memory_fraction: float
    num_sites: int
    usd: float | None
    token_factor: float = 1.0

    @property
    def loss_s(self) -> float:
        """Time of a step of unchanged training that leads as far. [s]"""
        return self.token_factor * self.step_s


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanObjective:
    """Measure of the best plan, and limits of a step.

    ``weights`` are those of ``R = w1 R_eff + w2 U - w3 C``: ``R_eff`` is the speed over that of the
    quickest plan, ``U`` the utilisation, ``C`` the bytes over links as a part of the most that any
    plan sends. ``most_s`` and ``most_usd`` bound a step. [s, USD]
    """

    kind: Kind = "time"
    weights: tuple[float, float, float] = (1.0, 0.0, 0.0)
    most_s: float = math.inf
    most_usd: float = math.inf

    @classmethod
    def parse(cls, text: str, at_most: str | None = None) -> "PlanObjective":
        """Read ``time``, ``cost`` or ``0.6,0.2,0.2``, and a limit such as ``90 s`` or ``5 USD``.

        Raises
        ------
        ValueError
            If it is none of these.

        Examples
        --------
        >>> PlanObjective.parse("cost", "90 s").most_s
        90.0
        """
        most_s, most_usd = _limit(at_most)
        if text in ("time", "cost"):
            kind: Kind = "time" if text == "time" else "cost"
            return cls(kind=kind, most_s=most_s, most_usd=most_usd)
        try:
            weights = tuple(float(part) for part in text.split(","))
        except ValueError:
            weights = ()
        if (
            len(weights) != 3
            or not all(0.0 <= one < math.inf for one in weights)
            or not sum(weights)
        ):
            raise ValueError(
                "objective: must be time, cost, or three weights of at least 0 such as 0.6,0.2,0.2 "
                f"for speed, utilisation and bytes; got {text!r}"
            )
        first, second, third = weights
        return cls(kind="weights", weights=(first, second, third), most_s=most_s, most_usd=most_usd)

    @property
    def is_time_alone(self) -> bool:
        """Whether the shortest step wins, whatever else."""
        return self.kind == "time" and self.most_usd == math.inf

    @property
    def preference(self) -> Preference:
        """Weights that policies see, with a sum of 1; time alone for a cost."""
        if self.kind != "weights":
            return TIME_ONLY
        time, utilisation, communication = (one / sum(self.weights) for one in self.weights)
        return Preference(time=time, utilisation=utilisation, communication=communication)

    def require_prices(self, topology: Topology) -> None:
        """Refuse a world that does not price what the objective or its limit counts.

        Raises
        ------
        ValueError
            If a cost counts and GPUs have no price, naming their domains.
        """
        if self.kind != "cost" and self.most_usd == math.inf:
            return
        names = [one.name for one in topology.domains if one.gpu_price_usd_per_hour is None]
        if names:
            raise ValueError(
                "objective: prices of GPUs must be given in the network for a cost in USD, "
                f"got none for {', '.join(names)}"
            )

    def allows(self, figures: ComparedFigures) -> bool:
        """Whether a plan keeps the limits; one without a price keeps none in USD."""
        usd = 0.0 if self.most_usd == math.inf else figures.usd
        return figures.step_s <= self.most_s and usd is not None and usd <= self.most_usd

    def ranking(self, plans: Sequence[ComparedFigures]) -> list[int]:
        """Positions of the plans, the best first; of equal ones least memory, then fewest sites."""
        quickest_s = min((one.loss_s for one in plans), default=1.0)
        most_bytes = max((one.wan_bytes for one in plans), default=0.0) or 1.0
        preference = self.preference

        def key(position: int) -> tuple[float, ...]:
            one = plans[position]
            first = one.loss_s
            if self.kind == "cost":
                first = one.token_factor * one.usd if one.usd is not None else math.inf
            elif self.kind == "weights":
                rate, part = quickest_s / one.loss_s, one.wan_bytes / most_bytes
                first = -preference.value(rate, one.utilisation, part)
            return first, one.loss_s, one.memory_fraction, one.num_sites

        return sorted(range(len(plans)), key=key)


def preference_of(owner: str, text: str) -> Preference:
    """Read the objective of what learns or decides by policies: ``time``, or three weights.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    found = PlanObjective.parse(text)
    if found.kind == "cost":
        raise ValueError(f"{owner}: objective must be time or three weights, got {text!r}")
    return found.preference


def _limit(text: str | None) -> tuple[float, float]:
    """Limits of a step in s and USD."""
    if text is None:
        return math.inf, math.inf
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*(s|min|h|USD)\s*", text)
    if match is None or not float(match[1]) > 0.0:
        raise ValueError(
            f"at_most: must be a time or a cost of a step above 0, such as 90 s, 2 min or 5 USD; "
            f"got {text!r}"
        )
    amount = float(match[1])
    if match[2] == "USD":
        return math.inf, amount
    return amount * {"s": 1.0, "min": 60.0, "h": 3600.0}[match[2]], math.inf
