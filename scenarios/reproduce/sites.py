"""Training runs over several real sites that others have measured, with what they leave unsaid.

Sources seldom say the step, the lines between sites, or the type of gradients. Each such figure is
a range with its reason; the prediction is that of the middle (geometric mean), and its range is
over all ends. The bound: every measured figure lies in its range. Where the lines are not said,
``implied_gbit_per_s`` is the rate at which the prediction of the middle would be the measured one.
Times are the formulas of ``des.plan.synchronisation``, with latencies once round the ring.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
import pandas as pd
from pydantic import model_validator

from des.figures.figure import Figure, panel_figure
from des.figures.marks import Line, Points
from des.figures.palette import BLUE, INK
from des.figures.panels import Axis, named_rows
from des.plan.synchronisation import (
    EVERY_STEP,
    DiLoCo,
    ReplicatedModel,
    StreamingDiLoCo,
    Synchronisation,
    compute_utilisation,
)
from scenarios.reproduce.cases import CaseFile, CaseForm, Count, PositiveNumber, read_form
from scenarios.reproduce.report import Bound, Reproduction

Known = PositiveNumber | tuple[PositiveNumber, PositiveNumber]
"""A figure that the source says, or the ends of what is assumed."""

_MODES: dict[str, Callable[[int, float], Synchronisation]] = {
    "every_step": lambda _, bits: DiLoCo(
        steps_between=EVERY_STEP.steps_between, bits_per_value=bits
    ),
    "diloco": lambda steps, bits: DiLoCo(
        steps_between=steps, bits_per_value=bits, behind_backward=False
    ),
    "streaming_diloco": lambda steps, bits: StreamingDiLoCo(
        steps_between=steps, bits_per_value=bits
    ),
}
_FIGURES = (
    "num_sites",
    "steps_between",
    "step_s",
    "gbit_per_s",
    "utilisation",
    "round_trip_ms",
    "bits_per_value",
)
"""Figures that may be ranges."""
_BYTES_PER_GBIT = 1e9 / 8.0
_GRID_GBIT_PER_S = np.geomspace(1e-3, 1e5, 4001)
IN_SIGHT = "Ranges were chosen with the measured figures in sight."
"""Note on all ranges."""

_SHOWN = ("name", "measured", "predicted", "low", "high", "implied_gbit_per_s")


class RangedForm(CaseForm):
    """A row some of whose figures, those of ``ranged``, may be ranges, each with its reason."""

    ranged: ClassVar[tuple[str, ...]]
    name: str
    source: str
    assumed: dict[str, str]

    @model_validator(mode="after")
    def _ranges_have_reasons(self) -> Self:
        for name in self.ranged:
            value = getattr(self, name)
            if isinstance(value, tuple) and (name not in self.assumed or value[0] > value[1]):
                raise ValueError(
                    f"{name} must be a rising range with its reason in assumed, got {value}"
                )
        return self

    def ends(self) -> Iterator[dict[str, float]]:
        """Yield all combinations of the ends of the ranges."""
        choices = [
            value if isinstance(value, tuple) else (value,)
            for value in (getattr(self, name) for name in self.ranged)
        ]
        for values in product(*choices):
            yield dict(zip(self.ranged, values, strict=True))

    def middle(self) -> dict[str, float]:
        """Geometric mean of each range."""
        values = {name: getattr(self, name) for name in self.ranged}
        return {
            name: math.sqrt(value[0] * value[1]) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    @property
    def sentence(self) -> str:
        """Source of the row, and what is assumed."""
        reasons = "; ".join(f"{name}, {reason}" for name, reason in self.assumed.items())
        return f"{self.name}: {self.source}. Assumed: {reasons}."


class SiteRow(RangedForm):
    """A run: its job and sites, and the time of a step over that of one site, or a needed rate."""

    ranged: ClassVar = _FIGURES
    quantity: Literal["relative_time", "needed_gbit_per_s"]
    measured: PositiveNumber
    mode: Literal["every_step", "diloco", "streaming_diloco"]
    num_parameters: PositiveNumber
    num_layers: Count
    num_sites: Count | tuple[Count, Count]
    steps_between: Count | tuple[Count, Count] = 1
    step_s: Known
    gbit_per_s: Known | None = None
    utilisation: Known | None = None
    round_trip_ms: Known
    bits_per_value: Known

    @model_validator(mode="after")
    def _needed_figure_is_given(self) -> Self:
        needed = "gbit_per_s" if self.quantity == "relative_time" else "utilisation"
        if getattr(self, needed) is None:
            raise ValueError(f"{needed} must be given for {self.quantity}, got none")
        return self

    def predicted(self, figures: dict[str, float]) -> float:
        """Predict the measured quantity."""
        if self.quantity == "relative_time":
            return 1.0 / self._utilisation(figures, figures["gbit_per_s"])
        return self._least_gbit_per_s(figures, figures["utilisation"])

    def implied_gbit_per_s(self) -> float:
        """Rate at which the middle would be as measured; NaN where the source says the rate."""
        if not isinstance(self.gbit_per_s, tuple):
            return math.nan
        return self._least_gbit_per_s(self.middle(), 1.0 / self.measured)

    def _least_gbit_per_s(self, figures: dict[str, float], utilisation: float) -> float:
        """Least rate of the grid; utilisation never falls as the rate rises."""
        place = bisect_left(
            _GRID_GBIT_PER_S, utilisation, key=lambda rate: self._utilisation(figures, rate)
        )
        return float(_GRID_GBIT_PER_S[place]) if place < len(_GRID_GBIT_PER_S) else math.inf

    def _utilisation(self, figures: dict[str, float], gbit_per_s: float) -> float:
        num_sites = round(figures["num_sites"])
        model = ReplicatedModel(
            num_parameters=self.num_parameters,
            num_layers=self.num_layers,
            step_time_s=figures["step_s"],
            num_replicas=num_sites,
        )
        return compute_utilisation(
            _MODES[self.mode](round(figures["steps_between"]), figures["bits_per_value"]),
            model,
            gbit_per_s * _BYTES_PER_GBIT,
            latency_s=(num_sites - 1) * figures["round_trip_ms"] / 1e3,
        )


def reproduce_cases(path: Path) -> Reproduction:
    """Reproduce the runs of a file."""
    return reproduce(read_form(path, CaseFile[SiteRow]).rows)


def reproduce(rows: tuple[SiteRow, ...]) -> Reproduction:
    """Hold every measured figure against its range."""
    frame = compare(rows)
    factors = np.abs(np.log(frame["predicted"] / frame["measured"]))
    return Reproduction(
        title="Measured runs over several real sites",
        frame=frame,
        bounds=(range_bound(frame),),
        unjudged=(
            "middle of what is assumed over the measured figure, mean factor: "
            f"{math.exp(factors.mean()):.2f}",
        ),
        figure=draw(frame),
        shown=_SHOWN,
        notes=(
            IN_SIGHT,
            *(row.sentence for row in rows),
        ),
    )


def range_bound(frame: pd.DataFrame) -> Bound:
    """Bound that every measured figure lies in its range."""
    is_in = (frame["low"] <= frame["measured"]) & (frame["measured"] <= frame["high"])
    return Bound.at_least(
        f"measured figures within the range of what is assumed, of {len(frame)}",
        int(is_in.sum()),
        len(frame),
        shown="d",
    )


def compare(rows: tuple[SiteRow, ...]) -> pd.DataFrame:
    """One row of each run: measured, predicted for the middle, and the range over all ends."""
    found = []
    for row in rows:
        ends = [row.predicted(one) for one in row.ends()]
        found.append(
            {
                "name": row.name,
                "quantity": row.quantity,
                "measured": row.measured,
                "predicted": row.predicted(row.middle()),
                "low": min(ends),
                "high": max(ends),
                "implied_gbit_per_s": row.implied_gbit_per_s(),
            }
        )
    return pd.DataFrame(found)


def draw(frame: pd.DataFrame) -> Figure:
    """Return the range and middle of each run over the measured figure."""
    rows = tuple(map(float, range(len(frame))))
    lows, middles, highs = (
        tuple((frame[column] / frame["measured"]).astype(float).tolist())
        for column in ("low", "predicted", "high")
    )
    ranges = [
        Line(label="", x=ends, y=(row, row), colour=BLUE)
        for row, ends in zip(rows, zip(lows, highs, strict=True), strict=True)
    ]
    return panel_figure(
        name="picture",
        title="Predictions over measured figures, with the range of what is assumed",
        seen=f"{len(frame)} runs: the middle is between {min(middles):.2f} and {max(middles):.2f} "
        "of the measured figure.",
        x=Axis(label="predicted over measured", scale="log"),
        y=named_rows(map(str, frame["name"])),
        marks=(*ranges, Points(label="middle", x=middles, y=rows, colour=INK)),
        height=0.8 + 0.4 * len(frame),
        grid="x",
        width=10.0,
    )
