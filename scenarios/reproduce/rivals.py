"""Plans of planners that are named after published programs, against those of the programs.

On each world both plans are judged by the simulator with the costs of today, the original under
the warm-up depth that is best for it. CrossPipe's greedy schedule is compared on unit pipelines and
on the placement that it was given. The bounds: no planner weaker on the mean, none by more than 5 %
anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from des.base.command import EXIT_CODES, exit_code_of
from des.base.flags import JsonFlag, option, parse
from des.base.lazy import lazy
from des.figures.figure import Figure
from des.figures.marks import GuideLine, Points
from des.figures.palette import BLUE, INK
from des.figures.panels import Axis, Panel
from scenarios.frame.outputs import figures_option, parquet_option
from scenarios.reproduce.bound import Bound
from scenarios.reproduce.cases import PUBLISHED, require_judged

if TYPE_CHECKING:
    import pandas as pd

    from agents.planners import table
    from agents.planners.sailor import sailor_lists
    from des.schedules import greedy, recurrence
    from scenarios.reproduce import report, rivals_cases
    from scenarios.reproduce.report import Reproduction
    from scenarios.reproduce.rivals_cases import PipelineRow, RivalWorld
else:
    pd = lazy("pandas")
    table = lazy("agents.planners.table")
    sailor_lists = lazy("agents.planners.sailor.sailor_lists")
    greedy = lazy("des.schedules.greedy")
    recurrence = lazy("des.schedules.recurrence")
    report = lazy("scenarios.reproduce.report")
    rivals_cases = lazy("scenarios.reproduce.rivals_cases")


PROG = "python -m scenarios.reproduce rivals"
SHIPPED = PUBLISHED / "rivals"
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
_EXAMPLES = f"""\
examples:
  python -m scenarios.reproduce rivals
  python -m scenarios.reproduce rivals --cases my_worlds --out runs/my_worlds

files read from --cases: world_NN.yaml with world_NN.json, crosspipe_pipelines.json
files written to --out: table.csv, table.md, picture.png

exit codes: 0 the bounds are met; 1 one is not; 2 a flag or the folder of cases is wrong;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Settings of the comparison with programs of rivals; the fields are the flags."""

    cases: Path = option(SHIPPED, "folder of worlds, jobs with original plans, and pipelines")
    out: Path = option(Path("runs/reproduce/rivals"), "folder for table and picture")
    figures: tuple[str, ...] = figures_option()
    parquet: bool = parquet_option()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EXAMPLES)
    frame_of_run = report.run_frame(config, PROG)
    worlds = rivals_cases.read_worlds(config.cases)
    frame = compare(worlds, rivals_cases.read_pipelines(config.cases))
    require_judged(config.cases, len(frame) > 0, "a plan of some original")
    return report.publish(reproduce(frame), config.out, frame_of_run)


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
    return report.Reproduction(
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
    panel = Panel(
        x=Axis(label="time over that of the original [%]"),
        y=Axis(ticks=tuple((float(at), name) for at, name in enumerate(names))),
        marks=(at_zero, points),
        grid="x",
    )
    return Figure(
        name="picture",
        title="Planners against the programs that they are named after",
        seen=f"Times of {len(frame)} plans over those of the originals, between "
        f"{min(differences):+.1f} and {max(differences):+.1f} %.",
        panels=(panel,),
    )


def _on_world(world: RivalWorld) -> Iterator[dict[str, object]]:
    """Yield the rows of a world; a plan of an original that fits nowhere has none."""
    for name, original in ORIGINALS.items():
        chosen = getattr(world.originals, original)
        if chosen is None:
            continue
        theirs = sailor_lists.quickest_of(world.problem, [rivals_cases.plan_of(chosen.plan)])
        if theirs is None:
            continue
        planner = table.PLANNERS[name].over_depths
        ours = planner(world.problem, np.random.default_rng(_SEED))
        yield {
            "planner": name,
            "case": world.name,
            "original": theirs[1],
            "ours": world.problem.judge(ours).makespan_s,
            "original_plan": rivals_cases.text_of(theirs[0]),
            "our_plan": rivals_cases.text_of(ours),
        }
    orders = world.originals.crosspipe_greedy
    if orders is not None:
        plan = replace(rivals_cases.plan_of(orders.placement_of), schedule="greedy")
        yield {
            "planner": "crosspipe",
            "case": world.name,
            "original": orders.iteration_s_whole_passes,
            "ours": world.problem.judge(plan).makespan_s,
            "our_plan": rivals_cases.text_of(plan),
        }


def _greedy_makespan(row: PipelineRow) -> float:
    pipeline = row.pipeline
    return recurrence.timing_of(greedy.greedy(pipeline), pipeline).makespan_s
