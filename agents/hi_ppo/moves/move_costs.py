"""Costs of plans and of changes of plan under a preference, without units."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from agents.decision.situation import TIME_ONLY, Preference
from agents.replanning.tables import EpisodeTables
from des.compiled.many.layout import Real


@dataclass(frozen=True, kw_only=True)
class MoveCosts:
    """An episode of C plans and E epochs: costs of iterations and of changes, without units.

    An epoch has a cost of 1 to spend: first on the change, then on iterations, as many as it is
    enough for. So its work is ``(1 - move) / run``, in that of an epoch of the static plan at base
    figures, whose iteration costs 1.

    Attributes
    ----------
    run
        Of an iteration of each plan in each epoch, (E, C).
    move
        Of changing at the start of an epoch from a plan to another, (E, C, C); 0 on the diagonal,
        ``inf`` where that cannot be.
    base
        Of an iteration of each plan at base figures, (C,).
    levels
        Level of a change, indices into `agents.decision.levels.LEVELS`, (C, C).
    """

    run: Real
    move: Real
    base: Real
    levels: npt.NDArray[np.int8]

    def __post_init__(self) -> None:
        num_epochs, num_plans = self.run.shape
        for name, shape in (
            ("move", (num_epochs, num_plans, num_plans)),
            ("base", (num_plans,)),
            ("levels", (num_plans, num_plans)),
        ):
            if getattr(self, name).shape != shape:
                raise ValueError(
                    f"move costs: {name} must be shaped {shape}, got {getattr(self, name).shape}"
                )
        for name in ("run", "base"):
            values = getattr(self, name)
            if not (np.isfinite(values) & (values > 0)).all():
                raise ValueError(f"move costs: {name} must be positive and finite everywhere")
        if not (self.move >= 0).all():  # NaN fails too
            raise ValueError("move costs: move must be at least 0 everywhere")
        if np.diagonal(self.move, axis1=1, axis2=2).any() or np.diagonal(self.levels).any():
            raise ValueError("move costs: to keep a plan must cost 0 and be of level 0")

    @property
    def num_epochs(self) -> int:
        """Number of epochs, E."""
        return len(self.run)

    @property
    def num_plans(self) -> int:
        """Number of plans, C."""
        return len(self.base)

    @property
    def static(self) -> int:
        """The first of the plans that are best at base figures."""
        return int(self.base.argmin())

    @classmethod
    def of(cls, tables: EpisodeTables, preference: Preference = TIME_ONLY) -> Self:
        """Weigh the time and the bytes of an episode.

        Time and utilisation count by time, of which both are functions: all domains' GPUs are
        counted, so utilisation is in proportion to 1 / time. The unit of time is an epoch, that of
        bytes what the plan that is quickest at base figures sends in one there.

        Raises
        ------
        ValueError
            If a plan does not work in some epoch: leave it out, see `working_plans` and
            `with_plans`. If bytes
            count and the quickest plan sends none: there is then no unit for them.
        """
        scale = CostScale.of(
            quickest=tables.static,
            base_iteration_s=tables.base_iteration_s,
            cost_bytes=tables.cost_bytes,
            epoch_s=tables.epoch_s,
            preference=preference,
        )
        return cls(
            run=scale.run(tables.iteration_s, tables.cost_bytes),
            move=scale.move(tables.move_s, tables.moved_bytes),
            base=scale.run(tables.base_iteration_s, tables.cost_bytes),
            levels=tables.level,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostScale:
    """Weights of seconds and bytes, such that an iteration of the quickest plan costs 1.

    Attributes
    ----------
    num_iterations
        Of that plan in an epoch; as many times less a change of equal time and bytes costs.
    per_s, per_byte
        Price of a second and of a byte of a change, in epochs of that plan.
    """

    num_iterations: float
    per_s: float
    per_byte: float

    @classmethod
    def of(
        cls,
        *,
        quickest: int,
        base_iteration_s: Real,
        cost_bytes: Real,
        epoch_s: float,
        preference: Preference,
    ) -> Self:
        """Take the units from the plan that is ``quickest`` at base figures."""
        num_iterations = epoch_s / float(base_iteration_s[quickest])
        epoch_bytes = num_iterations * float(cost_bytes[quickest])
        if preference.communication > 0 and not epoch_bytes > 0:
            raise ValueError(
                "cost scale: the quickest plan must send bytes over WAN links where "
                f"communication counts, got {epoch_bytes!r} bytes an epoch"
            )
        by_bytes = preference.communication
        return cls(
            num_iterations=num_iterations,
            per_s=(1.0 - by_bytes) / epoch_s,
            per_byte=by_bytes / epoch_bytes if by_bytes > 0 else 0.0,
        )

    def run(self, iteration_s: Real, cost_bytes: Real) -> Real:
        """Cost of an iteration of plans that take so long and send so much in it."""
        costs: Real = self.num_iterations * self.per_s * iteration_s
        return (
            costs + self.num_iterations * self.per_byte * cost_bytes
            if (self.per_byte > 0)
            else costs
        )

    def move(self, move_s: Real, moved_bytes: Real) -> Real:
        """Cost of changes that take so long and send so much."""
        costs: Real = self.per_s * move_s
        return costs + self.per_byte * moved_bytes if self.per_byte > 0 else costs


def working_plans(tables: EpisodeTables) -> npt.NDArray[np.int64]:
    """Return the plans that work at base figures and in every epoch, by number."""
    works = np.isfinite(tables.base_iteration_s) & np.isfinite(tables.iteration_s).all(axis=0)
    return np.flatnonzero(works)


def with_plans(tables: EpisodeTables, plans: npt.NDArray[np.int64]) -> EpisodeTables:
    """Return the part of an episode that has some of the plans, by number and in that order."""
    square = np.ix_(plans, plans)
    return replace(
        tables,
        plans=tuple(tables.plans[plan] for plan in plans.tolist()),
        iteration_s=tables.iteration_s[:, plans],
        move_s=tables.move_s[:, plans[:, np.newaxis], plans],
        moved_bytes=tables.moved_bytes[square],
        cost_bytes=tables.cost_bytes[plans],
        level=tables.level[square],
        base_iteration_s=tables.base_iteration_s[plans],
        known_from=None if tables.known_from is None else tables.known_from[plans],
    )
