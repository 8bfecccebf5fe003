"""Picture of a comparison of placements: a panel for each figure, a bar for each rule."""

from collections.abc import Sequence

from agents.devices.placement_rules import RuleOutcome
from des.figures.palette import BLUE, INK
from scenarios.frame.drawings import laid_out, new_figure, png_bytes


def rules_picture(found: Sequence[RuleOutcome], title: str) -> bytes:
    """Draw NVLinks, all-reduce time and fragmentation of each rule as a PNG."""
    panels = [
        ("NVLinks inside", [each.nvlinks for each in found]),
        ("all-reduce [ms]", [1e3 * (each.all_reduce_s or 0.0) for each in found]),
        ("fragmentation afterwards", [each.fragmentation_fraction for each in found]),
    ]
    figure = new_figure(width_inches=9.0, height_inches=2.6)
    figure.suptitle(title, color=INK, fontsize="medium")
    names = [each.rule for each in found]
    for axes, (label, values) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        axes.barh(names, values, color=BLUE, height=0.6)
        axes.invert_yaxis()
        axes.set_xlabel(label, color=INK)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0, colors=INK)
        axes.set_xlim(0.0, max([*values, 1e-9]) * 1.1)
    return png_bytes(laid_out(figure))
