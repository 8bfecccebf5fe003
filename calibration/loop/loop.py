"""Calibration in step with a training: what is ordered, waited for, put in force and remembered."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from calibration.loop.background import Calibrator
from calibration.loop.calibration_schedule import Timetable
from calibration.loop.entry import Entry
from calibration.loop.region import Choices, Region
from calibration.loop.rounds import CalibrationRound, Kind, Order
from des.base.checks import require_positive
from des.plan.corrections import Corrections
from des.plan.placement import Placement

MOST_OUTSIDE_FRACTION = 0.1
"""Share of the policy's choices; more outside the calibrated region are drift."""

BEFORE_TRAINING, SCHEDULED, NEW_LOGS = "before training", "scheduled", "logs have changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A calibration under way, and the step from which what it finds is in force."""

    order: Order
    cause: str
    ordered_at_step: int
    due_step: int


class CalibrationLoop:
    """Orders calibrations of a training and says which factors are in force.

    What is ordered when and what takes effect when follows from the steps alone; calibrations in
    the background that are not done when they are due are waited for. So the same seed gives the
    same training whatever the timing.

    Parameters
    ----------
    calibrator
        Runner of the calibrations.
    timetable
        When.
    initial
        Factors in force until a calibration finds better ones.
    bound
        Mean error of the iteration time above which a probe is drift.

    Attributes
    ----------
    entries
        All calibrations that are over.
    waited_s
        Time that this process has spent waiting for them. [s]
    """

    def __init__(
        self,
        calibrator: Calibrator,
        timetable: Timetable,
        *,
        initial: Corrections,
        bound: float,
    ) -> None:
        require_positive("calibration", "bound", bound)
        self._initial = initial
        self.entries: list[Entry] = []
        self.waited_s = 0.0
        self._calibrator, self._timetable, self._bound = calibrator, timetable, bound
        self._region: Region | None = None
        self._pending: _Pending | None = None
        self._num_done, self._num_looks_done = 0, 0
        self._sources = ""

    @property
    def in_force(self) -> Corrections:
        """The factors to simulate with: those of the last calibration that is over."""
        return self.entries[-1].corrections if self.entries else self._initial

    @property
    def cpu_s(self) -> float:
        """CPU time that the calibrations have used. [s]"""
        return self._calibrator.cpu_s

    def start(self) -> None:
        """Order the calibration before training, without waiting for it."""
        self._order("fit", BEFORE_TRAINING, (), step=0, lead_steps=0)

    def advance(self, step: int, choose: Callable[[], Choices]) -> list[Entry]:
        """Do what is due at a step, and return the calibrations that are over with it.

        Parameters
        ----------
        step
            Steps of training done; grows from call to call.
        choose
            Returns what the policy chooses now; called only if that is needed, and then at once.

        Raises
        ------
        ValueError, ReferenceRunError
            If a calibration failed; the loop stands where it stood before.
        """
        over, drift = [], None
        if self._pending is not None and step >= self._pending.due_step:
            entry = self._collect(self._pending, step)
            over.append(entry)
            if entry.is_drift:
                drift = (
                    f"drift: error {entry.error_after:.2%} of the policy's placements is above "
                    f"{self._bound:.2%}"
                )
        if self._pending is None and self._timetable.can_order_at(step):
            self._order_next(step, drift, choose)
        return over

    def _order_next(self, step: int, drift: str | None, choose: Callable[[], Choices]) -> None:
        num_due, num_looks = self._timetable.num_due(step), self._timetable.num_looks_due(step)
        if num_due > self._num_done:
            self._num_done = num_due
            self._order("fit", SCHEDULED, choose(), step=step)
        elif drift is not None or self._calibrator.sources() != self._sources:
            self._order("fit", drift or NEW_LOGS, choose(), step=step)
        elif num_looks > self._num_looks_done:
            choices = choose()
            outside = 0.0 if self._region is None else self._region.outside_fraction(choices)
            if outside > MOST_OUTSIDE_FRACTION:
                cause = f"drift: {outside:.0%} of the policy's placements left the region"
                self._order("fit", cause, choices, step=step)
            else:
                self._order("probe", SCHEDULED, choices, step=step)
        self._num_looks_done = num_looks

    def _order(
        self, kind: Kind, cause: str, choices: Choices, *, step: int, lead_steps: int | None = None
    ) -> None:
        lead = self._timetable.lead_steps if lead_steps is None else lead_steps
        if kind == "fit":
            self._sources = self._calibrator.sources()
        self._submit(
            _Pending(
                order=self._next_order(kind, choices),
                cause=cause,
                ordered_at_step=step,
                due_step=step + lead,
            )
        )

    def _next_order(self, kind: Kind, choices: Choices) -> Order:
        number = len(self.entries)
        return Order(number=number, kind=kind, in_force=self.in_force, choices=choices)

    def _submit(self, pending: _Pending) -> None:
        self._pending = pending
        self._calibrator.submit(pending.order)

    def _collect(self, pending: _Pending, step: int) -> Entry:
        began_s = time.perf_counter()
        found: CalibrationRound = self._calibrator.collect()
        waited_s = time.perf_counter() - began_s
        self.waited_s += waited_s
        self._pending = None
        if found.region is not None and pending.order.kind == "fit":
            self._region = (
                found.region if self._region is None else self._region.joined(found.region)
            )
        entry = Entry.of(
            found,
            pending.order,
            cause=pending.cause,
            ordered_at_step=pending.ordered_at_step,
            in_force_from_step=step,
            bound=self._bound,
        )
        self.entries.append(entry)
        return replace(entry, waited_s=waited_s)

    def close(self) -> None:
        """End what is under way."""
        self._calibrator.close()

    def state(self) -> dict[str, object]:
        """Everything that `load_state` needs, as plain content without anything of the clock."""
        pending = self._pending
        return {
            "entries": [entry.plain() for entry in self.entries],
            "region": None if self._region is None else asdict(self._region),
            "sources": self._sources,
            "num_done": self._num_done,
            "num_looks_done": self._num_looks_done,
            "pending": None if pending is None else _plain(pending),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned; a calibration that was under way begins again."""
        self.entries = [Entry.from_plain(entry) for entry in state["entries"]]
        self._region = None if state["region"] is None else Region(**state["region"])
        self._num_done, self._num_looks_done = state["num_done"], state["num_looks_done"]
        self._sources, self._pending = state.get("sources", ""), None
        if state["pending"] is not None:
            self._submit(self._pending_of(state["pending"]))

    def _pending_of(self, content: Mapping[str, Any]) -> _Pending:
        """Undo `_plain`; number and factors are those of any order that is made now."""
        choices = tuple(
            (Placement(domain_of_layer=tuple(layers)), count)
            for layers, count in content["choices"]
        )
        return _Pending(
            order=self._next_order(content["kind"], choices),
            cause=content["cause"],
            ordered_at_step=content["ordered_at_step"],
            due_step=content["due_step"],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _plain(pending: _Pending) -> dict[str, object]:
    order = pending.order
    return {
        "kind": order.kind,
        "choices": [(placement.domain_of_layer, count) for placement, count in order.choices],
        "cause": pending.cause,
        "ordered_at_step": pending.ordered_at_step,
        "due_step": pending.due_step,
    }
