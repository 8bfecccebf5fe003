"""Pictures of the pages, drawn from the tables here: ``python -m docs.figures.draw``."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from des.figures.figure import Figure
from des.figures.marks import SYMBOLS, Line, Points
from des.figures.palette import COLOURS
from des.figures.panels import Axis, Panel, named_rows
from des.figures.paper import image_bytes

_HERE = Path(__file__).parent
IMAGES = _HERE.parent / "images"

Row = dict[str, str]


def _rows(name: str, **wanted: str) -> list[Row]:
    with (_HERE / name).open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if wanted.items() <= row.items()]


def _column(rows: Sequence[Row], name: str) -> tuple[float, ...]:
    return tuple(float(row[name]) for row in rows)


def _points(rows: Sequence[Row], name: str, place: int, half_widths: str = "") -> Points:
    """Points at the rows of a panel, by a column."""
    return Points(
        label=name.removesuffix("_percent"),
        x=_column(rows, name),
        y=tuple(map(float, range(len(rows)))),
        colour=COLOURS[place],
        symbol=SYMBOLS[place],
        x_half_widths=_column(rows, half_widths) if half_widths else (),
    )


def planners() -> Figure:
    """Time of planners over the search, by transfer/compute ratio."""
    lines = []
    for place, name in enumerate(("atlas", "formula", "sailor", "dtfm", "cp_sat", "crosspipe")):
        rows = _rows("compare_static.csv", planner=name)
        x = tuple(map(math.log2, _column(rows, "transfer_compute_ratio")))
        y = _column(rows, "median_over_search_percent")
        lines.append(Line(label=name, x=x, y=y, colour=COLOURS[place], symbol=SYMBOLS[place]))
    ticks = tuple((math.log2(value), f"{value:g}") for value in (0.5, 1.0, 2.0, 4.0, 8.0))
    x_axis = Axis(label="transfer/compute ratio R", ticks=ticks)
    panel = Panel(x=x_axis, y=Axis(label="median time over search [%]"), marks=tuple(lines))
    return Figure(
        name="compare_planners",
        title="Planners against the search, 40 worlds on standing links",
        seen="CrossPipe's schedules are below the search; Sailor, DTFM and CP-SAT close above it.",
        panels=(panel,),
    )


def worth() -> Figure:
    """Gap of variants of Hi-PPO on 10 domains."""
    rows = _rows("hi_ppo_ablations.csv", decides="look_ahead", num_domains="10")
    names = [row["variant"].partition(" (")[0].partition(": ")[0] for row in rows]
    points = _points(rows, "gap_percent", 0, "half_width_percent")
    x = Axis(label="time over the best plan known, 95 % interval [%]", low=0.0)
    return Figure(
        name="hi_ppo_worth",
        title="Proposals to the look-ahead, 16 networks of 10 domains",
        seen="Trained policies are nearest to the best plan known, untrained ones farthest.",
        panels=(Panel(x=x, y=named_rows(names), marks=(points,), grid="x"),),
    )


def published() -> Figure:
    """Errors against published and measured figures, beside their targets."""
    rows = _rows("published.csv")
    marks = (_points(rows, "error_percent", 0), _points(rows, "target_percent", 1))
    x, y = Axis(label="mean absolute error [%]", low=0.0), named_rows(row["check"] for row in rows)
    return Figure(
        name="trust_published",
        title="The simulator against published and measured figures",
        seen="Eleven errors are below their targets, two above: MT-NLG and hosts as they come.",
        panels=(Panel(x=x, y=y, marks=marks, grid="x", height=3.6),),
    )


def scheduling() -> Figure:
    """Change of time of policies of the scheduling task."""
    rows = _rows("scheduling_policies.csv")
    points = _points(rows, "time_percent", 0, "half_width_percent")
    x, y = Axis(label="time against never moving [%]"), named_rows(row["policy"] for row in rows)
    return Figure(
        name="scheduling_policies",
        title="Policies of EastWest/Scheduling-v0 on 64 unseen draws",
        seen="A search in every epoch is quickest, then rules, then PPO; random takes far longer.",
        panels=(Panel(x=x, y=y, marks=(points,), grid="x"),),
    )


PICTURES = (planners, worth, published, scheduling)
"""All pictures."""


def main() -> int:
    """Draw all pictures into the folder of images."""
    for figure in (make() for make in PICTURES):
        (IMAGES / f"{figure.name}.png").write_bytes(image_bytes(figure, "png"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
