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


def _rows(name: str) -> list[dict[str, str]]:
    with (_HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _column(rows: Sequence[dict[str, str]], name: str) -> tuple[float, ...]:
    return tuple(float(row[name]) for row in rows)


def planners() -> Figure:
    """Time of planners over the search, by transfer/compute ratio."""
    rows = _rows("compare_static.csv")
    lines = []
    names = ("atlas", "formula", "sailor", "dtfm", "cp_sat", "crosspipe")
    for name, colour, symbol in zip(names, COLOURS, SYMBOLS, strict=False):
        of = [row for row in rows if row["planner"] == name]
        x = tuple(map(math.log2, _column(of, "transfer_compute_ratio")))
        y = _column(of, "median_over_search_percent")
        lines.append(Line(label=name, x=x, y=y, colour=colour, symbol=symbol))
    ticks = tuple((math.log2(value), f"{value:g}") for value in (0.5, 1.0, 2.0, 4.0, 8.0))
    panel = Panel(
        x=Axis(label="transfer/compute ratio R", ticks=ticks),
        y=Axis(label="median time over search [%]"),
        marks=tuple(lines),
    )
    return Figure(
        name="compare_planners",
        title="Planners against the search, 40 worlds on standing links",
        seen="CrossPipe's schedules are below the search; Sailor, DTFM and CP-SAT close above it.",
        panels=(panel,),
    )


def worth() -> Figure:
    """Gap of variants of Hi-PPO on 10 domains."""
    rows = [
        row
        for row in _rows("hi_ppo_ablations.csv")
        if row["decides"] == "look_ahead" and row["num_domains"] == "10"
    ]
    points = Points(
        label="mean and 95 % interval",
        x=_column(rows, "gap_percent"),
        y=tuple(map(float, range(len(rows)))),
        colour=COLOURS[0],
        x_half_widths=_column(rows, "half_width_percent"),
    )
    panel = Panel(
        x=Axis(label="time over the best plan known [%]", low=0.0),
        y=named_rows(row["variant"].partition(" (")[0].partition(": ")[0] for row in rows),
        marks=(points,),
        grid="x",
    )
    return Figure(
        name="hi_ppo_worth",
        title="What proposes to the look-ahead, 16 networks of 10 domains",
        seen="Trained policies are nearest to the best plan known, random orders farthest.",
        panels=(panel,),
    )


def published() -> Figure:
    """Errors against published and measured figures, beside their targets."""
    rows = _rows("published.csv")
    y = tuple(map(float, range(len(rows))))
    of = (("error", COLOURS[0], False), ("target", COLOURS[1], True))
    marks = tuple(
        Points(
            label=label,
            x=_column(rows, f"{label}_percent"),
            y=y,
            colour=colour,
            symbol="diamond" if is_open else "circle",
            is_open=is_open,
        )
        for label, colour, is_open in of
    )
    panel = Panel(
        x=Axis(label="mean absolute error [%]", low=0.0),
        y=named_rows(row["check"] for row in rows),
        marks=marks,
        grid="x",
        height=3.6,
    )
    return Figure(
        name="trust_published",
        title="The simulator against published and measured figures",
        seen="Eleven errors are below their targets, two above: MT-NLG and hosts as they come.",
        panels=(panel,),
    )


PICTURES = (planners, worth, published)
"""All pictures."""


def main() -> int:
    """Draw all pictures into the folder of images."""
    for figure in (make() for make in PICTURES):
        (IMAGES / f"{figure.name}.png").write_bytes(image_bytes(figure, "png"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
