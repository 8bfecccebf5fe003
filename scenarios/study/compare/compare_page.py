"""Report of a comparison of planners and rules."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from des.views.plan_views import PlanViews
from scenarios.frame.report import PageTable, Repetition, Report
from scenarios.study.compare.outputs import ComparisonSummary


def compare_report(
    found: ComparisonSummary,
    views: PlanViews,
    repeat: Repetition,
    devices: str,
) -> Report:
    """Return the report; on its first screen a plan for the first world, seen in views."""
    return Report(
        title="Planners and rules of re-planning compared",
        question="Which planner is nearest to the best plan known, and which rule to a "
        "clairvoyant?",
        answer=" ".join(_answers(found)),
        repeat=repeat,
        first=views.first,
        tables=tuple(_tables(found)),
        figures=(*found.figures, *views.more),
        caveats=(
            f"{devices[0].upper()}{devices[1:]}.",
            "Decision times are wall times on this machine; everything else repeats exactly.",
            *(
                f"{suite}: {method} {reason}"
                for suite, methods in found.left_out.items()
                for method, reason in methods.items()
            ),
        ),
    )


def _parts(found: ComparisonSummary) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Name, column and rows of each suite."""
    for column, name in (("gap", "static_summary"), ("excess", "dynamic_summary")):
        for suite, group in found.of_suites(name):
            yield suite, column, group[np.isfinite(group[column])]


def _answers(found: ComparisonSummary) -> Iterator[str]:
    for suite, column, group in _parts(found):
        if not group.empty:
            best = group.sort_values(column, kind="stable").iloc[0]
            kind = "gap" if column == "gap" else "excess"
            yield f"On {suite}: {best['method']}, {kind} {100 * best[column]:.2f} %."


def _tables(found: ComparisonSummary) -> Iterator[PageTable]:
    decision_s = found.decision_s
    for suite, column, group in _parts(found):
        ordered = group.sort_values(column, kind="stable")
        yield PageTable(
            title=f"{'Planners' if column == 'gap' else 'Rules'} on {suite}",
            head=("method", f"{column} [%]", "± [%]", "cases", "decision [ms]"),
            rows=tuple(
                (
                    str(row["method"]),
                    f"{100 * row[column]:.2f}",
                    f"{100 * row[f'{column}_half_width']:.2f}",
                    str(row["num_cases"]),
                    f"{1e3 * decision_s[suite, row['method']]:.3g}",
                )
                for row in ordered.to_dict("records")
            ),
            notes=("± is half the 95 % interval over worlds.",),
        )
