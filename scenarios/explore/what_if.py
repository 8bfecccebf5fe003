"""What-if sweeps: which kind of plan is quickest as links get faster or slower."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from agents.decision.families import EVERY_FAMILY
from agents.search.bound_search import search_bound
from agents.search.search import PlanRequest
from agents.search.shared_parts import SharedParts
from agents.trainers.ideal import IDEAL
from des import Topology
from des.figures.figure import Figure, panel_figure
from des.figures.marks import Cells, series_line
from des.figures.palette import colour, tint
from des.figures.panels import Axis, named_rows
from scenarios.explore.scene import Scene, Settings, scene_of

FACTORS = tuple(float(factor) for factor in 2.0 ** np.arange(-4.0, 4.5, 0.5))
"""Bandwidths of a sweep, relative to those of the world."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Best plan of each kind near the best of all, searched at each bandwidth."""

    topology: Topology
    rows: pd.DataFrame

    def winners(self) -> "pd.Series[str]":
        """Quickest kind at each factor."""
        best = self.rows.loc[self.rows.groupby("bandwidth_factor")["step_s"].idxmin()]
        return best.set_index("bandwidth_factor")["family"]

    def sentence(self) -> str:
        """Say from which bandwidth on which kind wins."""
        winners = self.winners()
        parts = [f"{winners.iloc[0]} below"]
        for (factor, family), before in zip(
            list(winners.items())[1:], winners.iloc[:-1], strict=True
        ):
            if family != before:
                gbit = self.gbit_per_s(float(str(factor)))
                parts.append(f"from {gbit:.3g} Gbit/s on the slowest link on {family}")
        if len(parts) == 1:
            return f"{winners.iloc[0]} wins at all bandwidths of the sweep."
        return f"{', '.join(parts)}."

    def gbit_per_s(self, factor: float) -> float:
        """Bandwidth of the slowest link at a factor."""
        links = self.topology.links
        return factor * min((link.bandwidth_bytes_per_s for link in links), default=0.0) * 8e-9


def bandwidth_sweep(scene: Scene, *, factors: Sequence[float] = FACTORS) -> Sweep:
    """Search the best plans of every kind among perfect devices at other bandwidths.

    No price in tokens is charged. Kinds that are far from the best plan are left out.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits.
    """
    topology, shared = scene.topology, SharedParts()
    ones = np.ones(len(topology.links))
    request = PlanRequest(
        topology=topology, job=scene.settings.job, trainer=IDEAL, token_factor=1.0
    )
    rows = []
    for factor in factors:
        scaled = replace(request, topology=topology.scaled(factor * ones, ones))
        for row in search_bound(scaled, shared=shared).rows:
            rows.append(
                {"bandwidth_factor": factor, "family": row.kind, "step_s": row.bound.step_s}
            )
    return Sweep(topology=topology, rows=pd.DataFrame(rows))


def sweep_lines(sweep: Sweep) -> Figure:
    """Return the time of a step of each family against bandwidth."""
    lines = tuple(
        series_line(
            family,
            map(sweep.gbit_per_s, group["bandwidth_factor"]),
            group["step_s"],
            place,
            symbol="circle",
        )
        for place, (family, group) in enumerate(sweep.rows.groupby("family", sort=False))
    )
    return panel_figure(
        name="what_if",
        title="Time of a step against bandwidth, by family",
        seen=f"Best plan of each family, searched at each bandwidth: {sweep.sentence()}",
        x=Axis(label="bandwidth of the slowest link [Gbit/s]", scale="log"),
        y=Axis(label="seconds a step", scale="log"),
        marks=lines,
        height=3.0,
        grid="both",
    )


def family_map(
    settings: Settings, *, num_sequences: Sequence[int], factors: Sequence[float]
) -> Figure:
    """Return which family wins where: bandwidth across, tokens a step down.

    Of families that leave the training unchanged and of those that do not; no price in tokens is
    charged.
    """
    names: list[str] = list(EVERY_FAMILY)
    sweeps = [
        bandwidth_sweep(scene_of(replace(settings, num_sequences=count)), factors=factors)
        for count in num_sequences
    ]
    winners = [list(sweep.winners()) for sweep in sweeps]
    texts = tuple(tuple(one.replace("_", " ") for one in row) for row in winners)
    rows = tuple(f"{count * settings.sequence_length / 1e6:.3g} M" for count in num_sequences)
    columns = tuple(f"{sweeps[-1].gbit_per_s(factor):.3g}" for factor in factors)
    cells = Cells(
        label="",
        rows=rows,
        columns=columns,
        values=tuple(tuple(float(names.index(one)) for one in row) for row in winners),
        texts=texts,
        kinds=tuple(
            (one.replace("_", " "), tint(colour(place))) for place, one in enumerate(names)
        ),
    )
    ticks = tuple((float(at), name) for at, name in enumerate(columns))
    won = sorted({text for row in texts for text in row})
    return panel_figure(
        name="families",
        title=f"Which family wins where: {settings.model} on {settings.network}",
        seen=f"Quickest family by bandwidth and tokens a step; these win somewhere: "
        f"{', '.join(won)}.",
        x=Axis(label="bandwidth of the slowest link [Gbit/s]", ticks=ticks),
        y=replace(named_rows(rows), label="tokens a step"),
        marks=(cells,),
        height=0.8 + 0.5 * len(rows),
        grid="none",
        width=9.0,
    )
