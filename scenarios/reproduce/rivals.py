"""Plans of planners that are named after published programs, against those of the programs.

On each world both plans are judged by the simulator with the costs of today, the original under
the warm-up depth that is best for it. CrossPipe's greedy schedule is compared on unit pipelines and
on the placement that it was given. The bounds: no planner weaker on the mean, none by more than 5 %
anywhere.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from agents.planners.sailor.sailor_lists import quickest_of
from agents.planners.table import PLANNERS
from des.figures.figure import Figure, panel_figure
from des.figures.marks import GuideLine, Points
from des.figures.palette import BLUE, INK
from des.figures.panels import Axis, named_rows
from des.schedules.greedy import greedy
from des.schedules.recurrence import timing_of
from scenarios.reproduce.cases import require_judged
from scenarios.reproduce.report import Bound, Reproduction
from scenarios.reproduce.rivals_cases import (
    PipelineRow,
    RivalWorld,
    plan_of,
    read_pipelines,
    read_worlds,
    text_of,
)

ORIGINALS = {"sailor": "sailor", "sailor_overlapped": "sailor", "dtfm": "dtfm"}
"""Program whose plans a planner is held against."""

MOST_MEAN_PERCENT = 0.0
MOST_WORST_PERCENT = 5.0
_DECIMALS = 9  # of a difference; sums of the same times in another order differ by less
_SEED = 0
_NOTES = (
    "ours and original are times of one iteration [s]; of pipelines, forward passes.",
    "crosspipe is the schedule alone, on the placement that the original schedule was made for; "
    "on worlds the time of the original is that of revision 3f2fa7c.",
    "sailor_overlapped has another formula than the program: it is held against it all the same.",
    "Not held against code: sailor_with_parallelism (no plan of the program here), mast and atlas "
    "(no published code).",
)


def reproduce_cases(folder: Path) -> Reproduction:
    """Reproduce the worlds and pipelines of a folder."""
    worlds = read_worlds(folder)
    frame = compare(worlds, read_pipelines(folder))
    require_judged(folder, len(frame) > 0, "a plan of some original")
    return reproduce(frame)


def compare(worlds: Sequence[RivalWorld], pipelines: Sequence[PipelineRow]) -> pd.DataFrame:
    """Both plans, both times and how much longer ours is [%], a row for each planner and case."""
    rows = [row for world in worlds for row in _on_world(world)]
    rows += [
        {
            "planner": "crosspipe",
            "case": row.name,
            "original": row.original_makespan,
            "ours": _greedy_makespan(row),
        }
        for row in pipelines
    ]
    frame = pd.DataFrame(rows)
    if len(frame):
        difference = 100.0 * (frame["ours"] / frame["original"] - 1.0)
        frame.insert(4, "difference_percent", difference.round(_DECIMALS) + 0.0)
    return frame


def reproduce(frame: pd.DataFrame) -> Reproduction:
    """Judge each planner by its mean and by its worst case."""
    bounds = []
    for name, cells in frame.groupby("planner", sort=True):
        differences = cells["difference_percent"]
        for what, measured, allowed in (
            ("mean", differences.mean(), MOST_MEAN_PERCENT),
            ("worst", differences.max(), MOST_WORST_PERCENT),
        ):
            bounds.append(
                Bound.at_most(
                    f"{name}, {what} [%] of {len(cells)} cases over the original",
                    float(measured),
                    allowed,
                    shown=".2f",
                )
            )
    return Reproduction(
        title="Planners against the published programs that they are named after",
        frame=frame,
        bounds=tuple(bounds),
        figure=draw(frame),
        notes=_NOTES,
        shown=("planner", "case", "original", "ours", "difference_percent"),
    )


def draw(frame: pd.DataFrame) -> Figure:
    """Differences of each planner, a point for each case."""
    names = sorted(str(name) for name in frame["planner"].unique())
    differences = tuple(frame["difference_percent"].astype(float))
    at_zero = GuideLine(label="as the original", colour=INK, x=0.0, dash="solid")
    points = Points(
        label="case",
        x=differences,
        y=tuple(float(names.index(str(name))) for name in frame["planner"]),
        colour=BLUE,
        hovers=tuple(map(str, frame["case"])),
    )
    return panel_figure(
        name="picture",
        title="Planners against the programs that they are named after",
        seen=f"Times of {len(frame)} plans over those of the originals, between "
        f"{min(differences):+.1f} and {max(differences):+.1f} %.",
        x=Axis(label="time over that of the original [%]"),
        y=named_rows(names),
        marks=(at_zero, points),
        grid="x",
    )


def _on_world(world: RivalWorld) -> Iterator[dict[str, object]]:
    """Yield the rows of a world; a plan of an original that fits nowhere has none."""
    for name, original in ORIGINALS.items():
        chosen = getattr(world.originals, original)
        if chosen is None:
            continue
        theirs = quickest_of(world.problem, [plan_of(chosen.plan)])
        if theirs is None:
            continue
        planner = PLANNERS[name].over_depths
        ours = planner(world.problem, np.random.default_rng(_SEED))
        yield {
            "planner": name,
            "case": world.name,
            "original": theirs[1],
            "ours": world.problem.makespan_s(ours),
            "original_plan": text_of(theirs[0]),
            "our_plan": text_of(ours),
        }
    orders = world.originals.crosspipe_greedy
    if orders is not None:
        plan = replace(plan_of(orders.placement_of), schedule="greedy")
        yield {
            "planner": "crosspipe",
            "case": world.name,
            "original": orders.iteration_s_whole_passes,
            "ours": world.problem.makespan_s(plan),
            "our_plan": text_of(plan),
        }


def _greedy_makespan(row: PipelineRow) -> float:
    pipeline = row.pipeline
    return timing_of(greedy(pipeline), pipeline).makespan_s
