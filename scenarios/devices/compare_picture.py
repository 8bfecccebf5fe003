"""Picture of a comparison of placements: a panel for each figure, a bar for each rule."""

from collections.abc import Sequence

from agents.devices.placement_rules import RuleOutcome
from des.figures.figure import Figure
from des.figures.marks import Boxes
from des.figures.palette import BLUE
from des.figures.panels import Axis, Panel


def rules_figure(found: Sequence[RuleOutcome], title: str) -> Figure:
    """Return NVLinks, all-reduce time and fragmentation of each rule; no bar: not computed."""
    panels = {
        "NVLinks inside": [each.nvlinks for each in found],
        "all-reduce [ms]": [1e3 * (each.all_reduce_s or 0.0) for each in found],
        "fragmentation afterwards": [each.fragmentation_fraction for each in found],
    }
    rows = tuple(map(float, range(len(found))))
    ticks = tuple(zip(rows, (each.rule for each in found), strict=True))
    none = tuple((row, "") for row in rows)
    return Figure(
        name="picture",
        title=title,
        seen=f"NVLinks, all-reduce time and fragmentation of {len(found)} rules.",
        panels=tuple(
            Panel(
                x=Axis(label=label, low=0.0),
                y=Axis(ticks=none if place else ticks, low=-0.5, is_reversed=True),
                marks=(
                    Boxes(
                        label="",
                        starts=(0.0,) * len(found),
                        ends=tuple(map(float, values)),
                        rows=rows,
                        colour=BLUE,
                        height=0.6,
                    ),
                ),
                height=0.5 + 0.25 * len(found),
                grid="x",
            )
            for place, (label, values) in enumerate(panels.items())
        ),
        columns=3,
        width=9.0,
    )
