"""Record of a simulated training run: time series of iterations, epochs and loads."""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from des.base.frames import frame_to_xarray
from des.base.lazy import lazy_imports
from des.plan.plan import Plan
from des.training.background import LoadSample

with lazy_imports(__name__):
    import pandas as pd

Series = Literal["iterations", "epochs", "loads"]
"""Time series that a history can be turned into."""


class IterationRow(NamedTuple):
    """One iteration, from its first pass until the next one may start.

    ``exposed_exchange_s`` is the part of the duration in which no stage computes because of
    exchanges of gradients (or parameters), its own or those put off by earlier iterations.
    ``num_bytes`` are those on all links, each hop counted, including the exchange that starts after
    it.
    """

    iteration: int
    epoch: int
    start_s: float
    duration_s: float
    exposed_exchange_s: float
    num_bytes: float
    utilisation: float


class EpochRow(NamedTuple):
    """One epoch, from the decision on its plan to the next decision.

    Where the plan changes, the training first waits ``drain_s`` for exchanges under way and then
    ``migration_s`` for ``moved_bytes`` and the restart. ``stall_s`` is the time in which the plan
    lacks memory that other jobs hold.
    """

    epoch: int
    start_s: float
    plan: Plan
    moved_bytes: float
    drain_s: float
    migration_s: float
    stall_s: float
    num_iterations: int


@dataclass(frozen=True, kw_only=True)
class TrainingHistory:
    """Outcome of a training run: iterations, migrations, drains and stalls add up to its time."""

    domains: tuple[str, ...]
    total_s: float
    iterations: tuple[IterationRow, ...]
    epochs: tuple[EpochRow, ...]
    loads: tuple[LoadSample, ...]

    @property
    def training_s(self) -> float:
        """Time of all iterations. [s]"""
        return math.fsum(row.duration_s for row in self.iterations)

    @property
    def migration_s(self) -> float:
        """Time of all changes of plan. [s]"""
        return math.fsum(row.migration_s for row in self.epochs)

    @property
    def idle_s(self) -> float:
        """Time spent waiting for memory, or for exchanges before a change of plan. [s]"""
        return math.fsum(row.stall_s + row.drain_s for row in self.epochs)

    @property
    def moved_bytes(self) -> float:
        """Model state moved by all changes of plan. [bytes]"""
        return math.fsum(row.moved_bytes for row in self.epochs)

    def to_xarray(self, series: Series) -> Any:
        """Return one of the time series as an `xarray.Dataset` over its rows; see `to_frame`.

        Raises
        ------
        ValueError
            If there is no such series, or the extra ``xarray`` is not installed.
        """
        return frame_to_xarray(self.to_frame(series).rename_axis("row").reset_index(), ["row"])

    def _repr_html_(self) -> str:
        """Sums and epochs as HTML, which notebooks show."""
        title = f"{len(self.iterations)} iterations in {self.total_s:.4g} s"
        moved = f"{self.moved_bytes / 1e9:.4g} GB moved in {self.migration_s:.4g} s"
        table = self.to_frame("epochs").to_html(
            index=False, float_format="{:.4g}".format, max_rows=20
        )
        return f"<h4>{title}</h4><p>{moved}</p>{table}"

    def to_frame(self, series: Series) -> "pd.DataFrame":
        """Return one of the time series as a data frame.

        Plans are written as the placements of their replicas and the schedule, domains by name.

        Raises
        ------
        ValueError
            If there is no such series.
        """
        if series == "iterations":
            return pd.DataFrame(self.iterations, columns=list(IterationRow._fields))
        if series == "epochs":
            frame = pd.DataFrame(self.epochs, columns=list(EpochRow._fields))
            plans: list[Plan] = list(frame.pop("plan"))
            frame.insert(2, "schedule", [plan.schedule for plan in plans])
            frame.insert(2, "placement", [" | ".join(map(str, plan.placements)) for plan in plans])
            return frame
        if series == "loads":
            frame = pd.DataFrame(self.loads, columns=list(LoadSample._fields))
            frame["domain"] = [self.domains[domain] for domain in frame["domain"]]
            return frame
        raise ValueError(f"to_frame: series must be iterations, epochs or loads; got {series!r}")
