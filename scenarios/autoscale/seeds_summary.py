"""Trainings of several seeds in one folder: their curves in one picture, and all unseen days."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agents.serving.table import LEARNT, RULES
from des.base.command import UsageError
from des.base.names import counted
from des.figures.figure import Figure
from des.figures.marks import Line
from des.figures.palette import COLOURS
from des.figures.panels import Axis, Panel
from scenarios.autoscale.comparison import cost_at_equal_attainment, summary_lines
from scenarios.frame.files import read_csv
from scenarios.frame.statistics import mean_and_interval

Row = Mapping[str, object]

_MOST_RULES = 4
"""Rules whose levels are drawn; more make a picture of lines that lie on each other."""


def summarised(folder: Path) -> tuple[list[str], Figure]:
    """Lines over all seeds and days, and the picture of the curves.

    Raises
    ------
    UsageError
        If there is no training that has been compared.
    """
    names = sorted(path.stem.removeprefix("days-") for path in folder.glob("days-*.csv"))
    if not names:
        raise UsageError(f"--summary: {folder} must hold days-SEED.csv of a training, got none")
    days = {name: _rows(folder / f"days-{name}.csv") for name in names}
    every = [row for rows in days.values() for row in rows]
    lines = [counted(len(names), "seed"), *summary_lines(every)]
    lines += [
        f"seed {name}: {line}"
        for name, rows in days.items()
        for line in cost_at_equal_attainment(rows)
    ]
    best = max((name for name in RULES if name != "oracle"), key=lambda name: _mean(every, name))
    gains = [
        _reward(row) - _reward(_same_day(rows, row, best))
        for rows in days.values()
        for row in rows
        if row["policy"] == LEARNT
    ]
    found = mean_and_interval(gains)
    lines.append(
        f"reward over that of {best} on the same day: {found.mean:+.3f} ± "
        f"{found.half_width:.3f} ({len(gains)} pairs of seed and day)"
    )
    curves = {name: _rows(folder / f"curve-{name}.csv") for name in names}
    levels = {name: _mean(every, name) for name in RULES}
    best_first = dict(sorted(levels.items(), key=lambda each: -each[1]))
    return lines, curves_figure(curves, best_first)


def _rows(path: Path) -> list[Row]:
    return [
        {str(name): cell for name, cell in row.items()} for row in read_csv(path).to_dict("records")
    ]


def _reward(row: Row) -> float:
    return float(str(row["reward"]))


def _mean(rows: Sequence[Row], policy: str) -> float:
    found = [_reward(row) for row in rows if row["policy"] == policy]
    return sum(found) / len(found)


def _same_day(rows: Sequence[Row], row: Row, policy: str) -> Row:
    return next(each for each in rows if each["day"] == row["day"] and each["policy"] == policy)


def curves_figure(curves: Mapping[str, Sequence[Row]], levels: Mapping[str, float]) -> Figure:
    """Return the curves of trainings, and as broken lines the levels of the best rules."""
    drawn = dict(list(levels.items())[:_MOST_RULES])
    marks = [
        Line(
            label=f"seed {name}",
            x=tuple(float(str(row["step"])) for row in rows),
            y=tuple(float(str(row["mean_reward"])) for row in rows),
            colour=COLOURS[number % len(COLOURS)],
            width=1.2,
        )
        for number, (name, rows) in enumerate(curves.items())
    ]
    last = max(mark.x[-1] for mark in marks)
    marks += [
        Line(
            label=name,
            x=(0.0, last),
            y=(level, level),
            colour=COLOURS[(len(curves) + number) % len(COLOURS)],
            dash="dash",
            width=0.8,
        )
        for number, (name, level) in enumerate(drawn.items())
    ]
    rest = f"; the other {len(levels) - len(drawn)} are below" if len(levels) > len(drawn) else ""
    return Figure(
        name="autoscale_curves",
        title="Training of the autoscaler",
        seen=f"Mean reward of a decision over training, {counted(len(curves), 'seed')}, with "
        f"exploration; in broken lines the best rules on unseen days{rest}.",
        panels=(Panel(x=Axis(label="decisions"), y=Axis(label="mean reward"), marks=tuple(marks)),),
    )
