"""Picture of a comparison of placements: a panel for each figure, a bar for each rule."""

from collections.abc import Sequence

from agents.devices.placement_rules import RuleOutcome
from des.figures.figure import Figure
from des.figures.marks import bars_from_zero
from des.figures.palette import BLUE
from des.figures.panels import Axis, Panel, named_rows


def rules_figure(found: Sequence[RuleOutcome], title: str) -> Figure:
    """Return NVLinks, all-reduce time and fragmentation of each rule; no bar: not computed."""
    panels = {
        "NVLinks inside": [each.nvlinks for each in found],
        "all-reduce [ms]": [1e3 * (each.all_reduce_s or 0.0) for each in found],
        "fragmentation afterwards": [each.fragmentation_fraction for each in found],
    }
    return Figure(
        name="picture",
        title=title,
        seen=f"NVLinks, all-reduce time and fragmentation of {len(found)} rules.",
        panels=tuple(
            Panel(
                x=Axis(label=label, low=0.0),
                y=named_rows("" if place else each.rule for each in found),
                marks=(bars_from_zero("", values, BLUE),),
                height=0.5 + 0.25 * len(found),
                grid="x",
            )
            for place, (label, values) in enumerate(panels.items())
        ),
        columns=3,
        width=9.0,
    )
