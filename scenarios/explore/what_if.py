"""What-if sweeps: which family is quickest as links get faster or slower."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from agents import decide
from agents.answer.answer import Answer
from agents.answer.judging import judged_plan
from agents.decision.families import FAMILIES
from agents.decision.plan_space import PlanSpace
from agents.decision.whole_plan import WholeProblem
from des.figures.figure import Figure
from des.figures.marks import Cells, Line
from des.figures.palette import colour, tint
from des.figures.panels import Axis, Panel, named_rows
from scenarios.explore.scene import Settings, scene_of

FACTORS = tuple(float(factor) for factor in 2.0 ** np.arange(-4.0, 4.5, 0.5))
"""Bandwidths of a sweep, relative to those of the world."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Best plan of each family today, judged again at other bandwidths."""

    answer: Answer
    rows: pd.DataFrame

    def winners(self) -> "pd.Series[str]":
        """Quickest family at each factor."""
        best = self.rows.loc[self.rows.groupby("bandwidth_factor")["step_s"].idxmin()]
        return best.set_index("bandwidth_factor")["family"]

    def sentence(self) -> str:
        """Say from which bandwidth on which family wins."""
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
        links = self.answer.question.problem.topology.links
        return factor * min((link.bandwidth_bytes_per_s for link in links), default=0.0) * 8e-9


def bandwidth_sweep(
    problem: WholeProblem, *, factors: Sequence[float] = FACTORS, max_judged: int | None = 2000
) -> Sweep:
    """Search the best plan of every family, and judge each at other bandwidths.

    Raises
    ------
    InfeasiblePlacementError
        If no family fits.
    """
    space = PlanSpace(families=FAMILIES)
    answer = decide.decide_ideal(problem.topology, problem.job, space=space, max_judged=max_judged)
    ones = np.ones(len(problem.topology.links))
    rows = []
    for factor in factors:
        scaled = replace(problem, topology=problem.topology.scaled(factor * ones, ones))
        for row in answer.rows:
            judged = judged_plan(scaled, row.judged.workload, row.judged.plan)
            rows.append(
                {
                    "bandwidth_factor": factor,
                    "family": row.judged.family,
                    "step_s": judged.step_s,
                }
            )
    return Sweep(answer=answer, rows=pd.DataFrame(rows))


def sweep_lines(sweep: Sweep) -> Figure:
    """Return the time of a step of each family against bandwidth."""
    lines = tuple(
        Line(
            label=str(family),
            x=tuple(sweep.gbit_per_s(factor) for factor in group["bandwidth_factor"]),
            y=tuple(group["step_s"].astype(float)),
            colour=colour(place),
            symbol="circle",
        )
        for place, (family, group) in enumerate(sweep.rows.groupby("family", sort=False))
    )
    panel = Panel(
        x=Axis(label="bandwidth of the slowest link [Gbit/s]", scale="log"),
        y=Axis(label="seconds a step", scale="log"),
        marks=lines,
        height=3.0,
        grid="both",
    )
    return Figure(
        name="what_if",
        title="Time of a step against bandwidth, by family",
        seen=f"Best plan of each family today, judged at other bandwidths: {sweep.sentence()}",
        panels=(panel,),
    )


def family_map(
    settings: Settings, *, num_sequences: Sequence[int], factors: Sequence[float]
) -> Figure:
    """Return which family wins where: bandwidth across, tokens a step down.

    Of families that leave the training unchanged and of those that do not; no price in tokens is
    charged.
    """
    names = [str(one) for one in FAMILIES]
    places: list[tuple[float | None, ...]] = []
    texts: list[tuple[str, ...]] = []
    gbits: list[float] = []
    for count in num_sequences:
        sweep = bandwidth_sweep(
            scene_of(replace(settings, num_sequences=count)).problem, factors=factors
        )
        winners = list(sweep.winners())
        places.append(tuple(float(names.index(one)) for one in winners))
        texts.append(tuple(one.replace("_", " ") for one in winners))
        gbits = [sweep.gbit_per_s(factor) for factor in factors]
    rows = tuple(f"{count * 4096 / 1e6:.3g} M" for count in num_sequences)
    columns = tuple(f"{gbit:.3g}" for gbit in gbits)
    cells = Cells(
        label="",
        rows=rows,
        columns=columns,
        values=tuple(places),
        texts=tuple(texts),
        kinds=tuple(
            (one.replace("_", " "), tint(colour(place))) for place, one in enumerate(names)
        ),
    )
    ticks = tuple((float(at), name) for at, name in enumerate(columns))
    panel = Panel(
        x=Axis(label="bandwidth of the slowest link [Gbit/s]", ticks=ticks),
        y=replace(named_rows(rows), label="tokens a step"),
        marks=(cells,),
        height=0.8 + 0.5 * len(rows),
        grid="none",
    )
    won = sorted({text for row in texts for text in row})
    return Figure(
        name="families",
        title=f"Which family wins where: {settings.model} on {settings.network}",
        seen=f"Quickest family by bandwidth and tokens a step; these win somewhere: "
        f"{', '.join(won)}.",
        panels=(panel,),
        width=9.0,
    )
