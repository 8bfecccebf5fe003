"""Bubbles of pipelines by schedule and number of microbatches."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from des.figures.figure import Figure
from des.figures.marks import Line, series_line
from des.figures.palette import GREY
from des.figures.panels import Axis, Panel
from scenarios.explore.scene import Settings, scene_of

_FREE = "free links"


def bubble_table(
    settings: Settings,
    *,
    schedules: Sequence[str],
    num_microbatches: Sequence[int] = (4, 8, 16, 32),
) -> pd.DataFrame:
    """Return bubble fraction and fullest memory of each schedule and number of microbatches.

    ``free_links`` is the bubble of equal stages on free links under 1F1B and GPipe,
    ``(p - 1) / (m + p - 1)``.
    """
    rows = []
    for schedule in schedules:
        for number in num_microbatches:
            scene = scene_of(replace(settings, schedule=schedule, num_sequences=number))
            stages = len(scene.result.stages)
            rows.append(
                {
                    "schedule": schedule,
                    "microbatches": number,
                    "bubble_fraction": scene.result.bubble_fraction,
                    "free_links": (stages - 1) / (number + stages - 1),
                    "memory_fraction": max(
                        one.required_bytes / one.capacity_bytes for one in scene.result.memory
                    ),
                }
            )
    return pd.DataFrame(rows)


def bubble_figure(table: pd.DataFrame) -> Figure:
    """Return bubbles and memory of `bubble_table` against the number of microbatches. [%]"""
    panels = tuple(
        _panel(table, column, label)
        for column, label in (("bubble_fraction", "bubble [%]"), ("memory_fraction", "memory [%]"))
    )
    best = table.sort_values("bubble_fraction", kind="stable").iloc[0]
    return Figure(
        name="bubbles",
        title="Bubble and fullest memory by schedule",
        seen=f"Bubbles of {table['schedule'].nunique()} schedules fall with more microbatches; the "
        f"smallest is {100 * best['bubble_fraction']:.0f} %, of {best['schedule']} with "
        f"{best['microbatches']} microbatches.",
        panels=panels,
        columns=2,
        width=9.0,
    )


def _panel(table: pd.DataFrame, column: str, label: str) -> Panel:
    lines = [
        series_line(name, own["microbatches"], 100.0 * own[column], place, symbol="circle")
        for place, (name, own) in enumerate(table.groupby("schedule", sort=False))
    ]
    if column == "bubble_fraction":
        free = table.drop_duplicates("microbatches")
        lines.append(
            Line(
                label=_FREE,
                x=tuple(free["microbatches"].astype(float)),
                y=tuple(100.0 * free["free_links"].astype(float)),
                colour=GREY,
                dash="dash",
            )
        )
    return Panel(
        x=Axis(label="microbatches", is_counted=True),
        y=Axis(label=label, low=0.0),
        marks=tuple(lines),
        grid="both",
    )
