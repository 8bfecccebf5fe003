"""Outputs of a comparison: tables, a summary, bars, and the same on the console."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from agents.planners.names import POLICY
from des.base.document import plain_json
from des.figures.figure import Figure
from scenarios.frame.files import write_json
from scenarios.frame.run_folder import RunFolder
from scenarios.frame.statistics import mean_and_interval
from scenarios.study.compare.bootstrap import LEAST_WORLDS
from scenarios.study.compare.cases import SITES
from scenarios.study.compare.compare_charts import Bar, bars_of
from scenarios.study.compare.dynamic_part import CLAIRVOYANT
from scenarios.study.compare.running import TIMINGS
from scenarios.study.compare.summary import (
    best_single_rule,
    bound_tightness,
    dynamic_summary,
    foreseen_part,
    hindsight_excess,
    planners_left_out,
    saved_by_tokens,
    static_summary,
)
from scenarios.study.compare.tables import (
    against,
    as_percent,
    as_time,
    method_table,
    saved_table,
    tightness_table,
)

OVER_POLICY = f"over_{POLICY}"


@dataclass(frozen=True, kw_only=True)
class ComparisonSummary:
    """Summaries of the parts that were compared.

    ``rules`` says of each suite which single rule was best and what the best rule of each world
    would have cost in hindsight; ``foreseen`` holds the same of rules that know all plans of the
    draw, None where there are none. ``left_out`` says by suite why planners have no plan somewhere.
    ``frames`` are the tables to write, by the stems of their files.
    """

    left_out: dict[str, dict[str, str]]
    rules: dict[str, dict[str, object]]
    frames: dict[str, pd.DataFrame]
    figures: tuple[Figure, ...]

    def of_suites(self, name: str) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield the lines of each suite in a table; none where there is no such table."""
        if name in self.frames:
            for suite, group in self.frames[name].groupby("suite", sort=False):
                yield str(suite), group

    @property
    def decision_s(self) -> "pd.Series[float]":
        """Mean wall time of decisions by suite and method. [s]"""
        return self.frames["timings"].groupby(["suite", "method"])["decision_time_s"].mean()


def write_comparison(
    folder: RunFolder, parts: Mapping[str, Sequence[pd.DataFrame]]
) -> ComparisonSummary:
    """Sum a comparison up and write ``summary.json``; of its tables only timings differ by run."""
    frames = {part: pd.concat(rows, ignore_index=True) for part, rows in parts.items() if rows}
    timed = [
        frame[["case", "suite", "method", *(name for name in TIMINGS if name in frame)]]
        for frame in frames.values()
    ]
    tables = {"timings": pd.concat(timed, ignore_index=True)}
    for part, frame in frames.items():
        tables[part] = frame.drop(columns=list(TIMINGS), errors="ignore")
    left_out, rules = dict[str, dict[str, str]](), dict[str, dict[str, object]]()
    figures = list[Figure]()
    if "static" in frames:
        static = _by_suite(frames["static"])
        left_out = planners_left_out(frames["static"])
        tables |= {
            "static_summary": static,
            "saved_by_tokens": saved_by_tokens(frames["static"]),
            "tightness": bound_tightness(frames["static"]),
        }
        panels = [
            (_reference(str(suite), group), _bars(group, "gap"))
            for suite, group in static.groupby("suite", sort=False)
        ]
        if shown := [panel for panel in panels if panel[1]]:
            title = "Planners on worlds that stand still"
            figures.append(bars_of(shown, "gap [%]", name="static", title=title))
    if "dynamic" in frames:
        dynamic = tables["dynamic_summary"] = dynamic_summary(frames["dynamic"])
        rules = _rules(frames["dynamic"])
        panels = [
            (str(suite), _bars(group, "excess"))
            for suite, group in dynamic.groupby("suite", sort=False)
        ]
        label = "total time over the clairvoyant [%]"
        title = "Rules of re-planning on moving worlds"
        figures.append(bars_of(panels, label, name="dynamic", title=title))
    result = ComparisonSummary(
        left_out=left_out, rules=rules, frames=tables, figures=tuple(figures)
    )
    write_json(folder.path / "summary.json", plain_json(comparison_content(result)))
    return result


def comparison_content(result: ComparisonSummary) -> dict[str, object]:
    """Return the content of summary.json."""
    return {
        "static": result.frames.get("static_summary"),
        "saved_by_tokens": result.frames.get("saved_by_tokens"),
        "tightness": result.frames.get("tightness"),
        "left_out": result.left_out,
        "dynamic": result.frames.get("dynamic_summary"),
        "rules": result.rules,
    }


def show_comparison(console: Console, result: ComparisonSummary, devices: str) -> None:
    """Print the summaries, and what runs the plans."""
    decision_s = result.decision_s
    for suite, group in result.of_suites("static_summary"):
        _show_static(console, suite, group, decision_s)
        for method, reason in result.left_out.get(suite, {}).items():
            console.print(f"{method} {reason}", soft_wrap=True)
    for name, table_of in (("saved_by_tokens", saved_table), ("tightness", tightness_table)):
        if name in result.frames and not result.frames[name].empty:
            console.print(table_of(result.frames[name]))
    for suite, group in result.of_suites("dynamic_summary"):
        console.print(_rules_table(suite, group, decision_s))
        console.print(_about_rules(result.rules[suite]), soft_wrap=True)
        if (group["excess"] < 0.0).any():
            console.print("excess below 0: plans that the clairvoyant's rules do not know")
    if not all(group["is_same_training"].all() for _, group in result.of_suites("static_summary")):
        console.print("† replicas do not exchange after every step: another training")
    console.print(
        "± half a 95 % interval; * differs by more than chance (p < 0.05, bootstrap over worlds); "
        f"no star where there are fewer than {LEAST_WORLDS} worlds; {devices}",
        soft_wrap=True,
    )


def _rules_table(suite: str, group: pd.DataFrame, decision_s: "pd.Series[float]") -> Table:
    """Rules in lines; a column for the best that searches in every epoch where one was measured."""
    has_searching = bool(group["over_best_searching"].notna().any())
    columns = ["excess [%]", "moving [%]", "cases", "over best rule", "decision"]
    if has_searching:
        columns.insert(4, "over best searching [%]")
    if has_policy := bool(group[OVER_POLICY].notna().any()):
        columns.append(f"over {POLICY}")
    table = method_table(f"rules on {suite}", *columns)
    for row in group.to_dict("records"):
        cells = [
            as_percent(row["excess"], row["excess_half_width"]),
            as_percent(row["change_share"]),
            f"{row['num_cases']}",
            against(row, "over_best_rule"),
            as_time(decision_s[suite, row["method"]]),
        ]
        if has_policy:
            cells.append(against(row, OVER_POLICY))
        if has_searching:
            low, high = row["over_best_searching_low"], row["over_best_searching_high"]
            interval = (
                f"{100 * row['over_best_searching']:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]"
            )
            cells.insert(4, interval)
        table.add_row(str(row["method"]), *cells)
    return table


def _show_static(
    console: Console, suite: str, group: pd.DataFrame, decision_s: "pd.Series[float]"
) -> None:
    headings = ["gap [%]", "p95", "compared", "misfit", "over bound", "over search", "decision"]
    has_ideal = bool(group["over_ideal"].notna().any())
    if has_ideal:
        headings[4:5] = ["best family", "over bound", "time / ideal"]
    if has_policy := bool(group[OVER_POLICY].notna().any()):
        headings.append(f"over {POLICY}")
    table = method_table(f"planners on {suite}, {_reference(suite, group)}", *headings)
    for row in group.to_dict("records"):
        cells = [
            as_percent(row["gap"], row["gap_half_width"]),
            as_percent(row["p95_gap"]),
            f"{row['num_proven']}/{row['num_cases']}",
            f"{row['num_over_memory']}",
            as_percent(row["over_bound"]),
            against(row, "over_search"),
            as_time(decision_s[suite, row["method"]]),
        ]
        if has_ideal:
            cells.insert(4, f"{row['num_best_family']:.0f}")
            cells.insert(6, f"{row['over_ideal']:.3f}")
        if has_policy:
            cells.append(against(row, OVER_POLICY))
        table.add_row(f"{row['method']}{'' if row['is_same_training'] else ' †'}", *cells)
    console.print(table)


def _reference(suite: str, group: pd.DataFrame) -> str:
    """Reference of a gap in words; one that is proven has the schedule of the world."""
    if suite in SITES or group["num_best_family"].notna().any():
        return "gap to the best plan of all methods"
    return "gap to the proven optimum of the world's schedule, one stage in each domain"


def _by_suite(rows: pd.DataFrame) -> pd.DataFrame:
    """Summaries of planners, suite by suite."""
    parts = [
        static_summary(group).assign(suite=suite)
        for suite, group in rows.groupby("suite", sort=False)
    ]
    return pd.concat(parts, ignore_index=True)


def _about_rules(about: Mapping[str, object]) -> str:
    foreseen = about.get("foreseen")
    single = as_percent(about["best_single_excess"])
    text = (
        f"best single rule {about['best_single_rule']}: {single} % "
        "above the clairvoyant; best rule per world in hindsight: "
        f"{as_percent(about['hindsight_excess'], about['hindsight_half_width'])} %"
    )
    if isinstance(foreseen, Mapping):
        return f"{text}\nwhere all plans of the draw are known: {_about_rules(foreseen)}"
    return text


def _rules(rows: pd.DataFrame) -> dict[str, dict[str, object]]:
    found = {}
    for suite, group in rows.groupby("suite", sort=False):
        foreseen = foreseen_part(group)
        about = None if foreseen.empty else _rules_of(foreseen)
        found[str(suite)] = {**_rules_of(group), "foreseen": about}
    return found


def _rules_of(rows: pd.DataFrame) -> dict[str, object]:
    best = best_single_rule(rows)
    own = rows[rows["method"] == best]
    hindsight = mean_and_interval(hindsight_excess(rows))
    return {
        "best_single_rule": best,
        "best_single_excess": float((own["time_s"] / own["best_s"] - 1.0).mean()),
        "hindsight_excess": hindsight.mean,
        "hindsight_half_width": hindsight.half_width,
    }


def _bars(summary: pd.DataFrame, figure: str) -> list[Bar]:
    return [
        Bar(name=str(row["method"]), value=row[figure], half_width=row[f"{figure}_half_width"])
        for row in summary.to_dict("records")
        if np.isfinite(row[figure]) and row["method"] != CLAIRVOYANT
    ]
