"""Rows of an answer: the best plan of each family with its figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agents.decision.families import Family
from agents.decision.token_prices import TokenPrice, changes_training, price_of
from agents.decision.whole_plan import JudgedPlan, WholeProblem
from agents.judge.mean_use import MeanUse, mean_use, step_usd

FAMILY_TITLES: Mapping[Family, str] = {
    "single": "single domain",
    "pipeline": "pipeline",
    "replicas": "replicas",
    "hybrid": "replicas of pipelines",
    "diloco": "DiLoCo",
    "streaming_diloco": "Streaming DiLoCo",
}
"""Names of the families for people."""


@dataclass(frozen=True, kw_only=True)
class FamilyRow:
    """A judged plan with the figures that people compare.

    Attributes
    ----------
    usd
        Cost of a step at the prices of the world; None where it has none. [USD]
    bound_s
        Proven lower bound of a step for any plan of the kind; None where there is none. [s]
    decided_by
        ``search`` over the families, the policies of ``hi_ppo``, or ``in force`` for the plan that
        stays.
    """

    judged: JudgedPlan
    use: MeanUse
    usd: float | None
    price: TokenPrice
    bound_s: float | None = None
    decided_by: str = field(default="search")

    @property
    def step_s(self) -> float:
        """Time of a mean step. [s]"""
        return self.judged.step_s

    @property
    def priced_s(self) -> float | None:
        """Time of the steps that equal one of unchanged training; None without a price. [s]"""
        return None if self.price.factor is None else self.step_s * self.price.factor

    @property
    def is_marked(self) -> bool:
        """Whether the plan changes the training."""
        return changes_training(self.judged.plan)

    @property
    def title(self) -> str:
        """Name of the family for people, with the compression of activations if there is any."""
        factor = self.judged.plan.activation_compression
        shrunk = f", activations / {factor:g}" if factor > 1.0 else ""
        return FAMILY_TITLES[self.judged.family] + shrunk

    @property
    def over_bound(self) -> float | None:
        """Share by which a step is longer than the bound; None without one."""
        return None if self.bound_s is None else self.step_s / self.bound_s - 1.0


def row_of(
    problem: WholeProblem,
    judged: JudgedPlan,
    token_factor: float | None,
    *,
    decided_by: str = "search",
) -> FamilyRow:
    """Reckon the figures of a judged plan.

    Parameters
    ----------
    token_factor
        Price in tokens of every plan that changes the training; None: published ones.
    """
    use = mean_use(problem.topology, judged, problem.corrections)
    price = price_of(judged.plan, judged.workload)
    if token_factor is not None and changes_training(judged.plan):
        price = TokenPrice(factor=token_factor, note="as given")
    return FamilyRow(
        judged=judged,
        use=use,
        usd=step_usd(problem.topology, judged, use),
        price=price,
        decided_by=decided_by,
    )


def at_par(row: FamilyRow) -> FamilyRow:
    """Return a row whose plan needs no more tokens than unchanged training."""
    return replace(row, price=TokenPrice(factor=1.0))


def quickest(rows: tuple[FamilyRow, ...], most_slowdown: float | None = None) -> FamilyRow:
    """Return the row that reaches a loss first; the first of equals.

    Rows without a price have no say. With ``most_slowdown`` neither have those whose step is
    longer, by more than this share, than the shortest of all rows with a price.

    Raises
    ------
    ValueError
        If no row has a price.
    """
    priced = [(row, row.priced_s) for row in rows]
    known = [(row, seconds) for row, seconds in priced if seconds is not None]
    if not known:
        raise ValueError(
            "answer: token_factor must be given where no plan left has a published price "
            f"({'; '.join(sorted({row.price.note for row in rows}))}), got None"
        )
    if most_slowdown is not None:
        limit_s = (1.0 + most_slowdown) * min(row.step_s for row, _ in known)
        known = [(row, seconds) for row, seconds in known if row.step_s <= limit_s]
    return min(known, key=lambda each: each[1])[0]
