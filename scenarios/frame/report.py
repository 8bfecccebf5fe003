"""The report of a run: one HTML file that needs nothing else, and the same table for a console."""

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text

from agents.answer.sections import Section, as_html
from scenarios.frame.files import write_text
from scenarios.frame.pictures import Picture, picture_html


class TargetTable(Protocol):
    """The table of targets of a run, as a part of a page."""

    @property
    def html(self) -> str:
        """The table as HTML, everything in it escaped."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Content of a report, as plain text and numbers; nothing in it is HTML."""

    title: str
    verdict: str
    command: str
    summary: pd.DataFrame | None = None
    sections: tuple[Section, ...] = ()
    pictures: tuple[Picture, ...]
    configuration: Mapping[str, object]
    fidelity: tuple[str, ...]
    caveats: tuple[str, ...]
    targets: TargetTable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantity:
    """Format of a column of the summary; the shown number is the value times ``factor``."""

    heading: str
    factor: float = 1.0
    best: str = ""  # "low", "high" or neither


_QUANTITIES = {
    "iteration_time_s": _Quantity(heading="iteration time [s]", best="low"),
    "utilisation": _Quantity(heading="utilisation [%]", factor=1e2, best="high"),
    "communication_cost_bytes": _Quantity(heading="comm. cost [GB]", factor=1e-9, best="low"),
    "migration_s": _Quantity(heading="change [s]", best="low"),
    "moved_bytes": _Quantity(heading="moved [GB]", factor=1e-9, best="low"),
    "decision_time_s": _Quantity(heading="decision time [ms]", factor=1e3, best="low"),
    "reward": _Quantity(heading="reward", best="high"),
    "fits_memory": _Quantity(heading="fits mem. [%]", factor=1e2, best="high"),
}
_REPORT_ONLY = ("reward", "migration_s", "moved_bytes")
_HALF_WIDTH = "_half_width"

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --paper: #ffffff; --faint: #d8dee4;
  --soft: #59636e; --panel: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117;
  --faint: #3d444d; --soft: #9198a1; --panel: #161b22; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 76rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0.5rem 0; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 0.6rem; }
.verdict { font-size: 1.15rem; margin: 0 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.4rem 0.8rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--faint); }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--soft); font-weight: 600; font-size: 0.9rem; }
tbody th { font-weight: 500; }
.targets td, .targets th { text-align: left; vertical-align: top; }
.targets td:last-child { white-space: normal; min-width: 24rem; }
.beyond, .reached { color: #1a7f37; font-weight: 600; }
.missed { color: #cf222e; font-weight: 600; } .not-measured { color: var(--soft); }
summary { cursor: pointer; } details p, li { font-size: 0.9rem; }
.configuration td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
pre { background: var(--panel); border: 1px solid var(--faint); border-radius: 6px;
  padding: 0.8rem; overflow-x: auto; }
figure { margin: 0 0 1.5rem; }
img { display: block; max-width: 100%; height: auto; background: #ffffff; border-radius: 6px; }
figcaption, .note { color: var(--soft); font-size: 0.9rem; margin-top: 0.4rem; }
"""


def write_report(path: Path, report: Report) -> None:
    """Write a report as one HTML file, atomically."""
    write_text(path, render_report(report))


def render_report(report: Report) -> str:
    """Return a report as HTML with its pictures and style inside it."""
    title = html.escape(report.title)
    sections = [
        f"<h1>{title}</h1>",
        f'<p class="verdict">{html.escape(report.verdict)}</p>',
        *(
            ()
            if report.summary is None
            else (f"<h2>Planners</h2>\n{_summary_html(report.summary)}",)
        ),
        *((f"<h2>Answer</h2>\n{as_html(report.sections)}",) if report.sections else ()),
        *(() if report.targets is None else (f"<h2>Targets</h2>\n{report.targets.html}",)),
        f"<h2>Figures</h2>\n{''.join(map(picture_html, report.pictures))}",
        f"<h2>Fidelity of the simulator</h2>\n{_list_html(report.fidelity)}",
        f"<h2>How to repeat</h2>\n<pre><code>{html.escape(report.command)}</code></pre>",
        f"<h2>Configuration</h2>\n{_configuration_html(report.configuration)}",
        f"<h2>Caveats</h2>\n{_list_html(report.caveats)}",
    ]
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<title>{title}</title>",
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body>",
            *sections,
            "</body>",
            "</html>\n",
        ]
    )


def summary_table(summary: pd.DataFrame) -> Table:
    """Return the summary of `scenarios.frame.statistics.summarise` as a table for a rich console.

    Some columns stay in the HTML report, so that the table fits 80 characters.
    """
    columns = [column for column in _value_columns(summary) if column not in _REPORT_ONLY]
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, caption=_note(summary), caption_justify="left"
    )
    table.add_column("planner", no_wrap=True)
    for column in columns:
        table.add_column(
            Text(_quantity(column).heading.replace(" ", "\n")), justify="right", no_wrap=True
        )
    for planner, row in summary.iterrows():
        cells = [
            Text(
                _cell(row, column).replace(" ", ""),
                style="bold" if _is_best(summary, row, column) else "",
            )
            for column in columns
        ]
        table.add_row(Text(str(planner)), *cells)
    return table


def _summary_html(summary: pd.DataFrame) -> str:
    columns = _value_columns(summary)
    headings = "".join(
        f'<th scope="col">{html.escape(_quantity(column).heading)}</th>' for column in columns
    )
    rows = []
    for planner, row in summary.iterrows():
        cells = []
        for column in columns:
            text = html.escape(_cell(row, column))
            best = _is_best(summary, row, column)
            cells.append(f"<td><strong>{text}</strong></td>" if best else f"<td>{text}</td>")
        rows.append(f'<tr><th scope="row">{html.escape(str(planner))}</th>{"".join(cells)}</tr>')
    body = "\n".join(rows)
    return (
        '<div class="wide"><table>\n'
        f'<thead><tr><th scope="col">planner</th>{headings}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>\n"
        f'<p class="note">{html.escape(_note(summary))}</p>'
    )


def _configuration_html(configuration: Mapping[str, object]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>'
        for name, value in configuration.items()
    )
    return f'<table class="configuration"><tbody>\n{rows}\n</tbody></table>'


def _list_html(lines: tuple[str, ...]) -> str:
    items = "\n".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<ul>\n{items}\n</ul>"


def _note(summary: pd.DataFrame) -> str:
    counts = sorted({int(count) for count in summary["num_draws"]})
    draws = " or ".join(map(str, counts))
    return f"Mean ± half width of the 95 % Student-t interval over {draws} draws; best in bold."


def _value_columns(summary: pd.DataFrame) -> list[str]:
    """Columns that have an interval, the known quantities first and in their order."""
    columns = [name for name in summary.columns if f"{name}{_HALF_WIDTH}" in summary]
    known = [name for name in _QUANTITIES if name in columns]
    return known + [name for name in columns if name not in known]


def _quantity(column: str) -> _Quantity:
    return _QUANTITIES.get(column, _Quantity(heading=column))


def _is_best(summary: pd.DataFrame, row: "pd.Series[float]", column: str) -> bool:
    """Whether no planner's mean is better; planners that tie are all best."""
    best = _quantity(column).best
    if not best or summary[column].nunique() == 1:
        return False
    return bool(row[column] == (summary[column].min() if best == "low" else summary[column].max()))


def _cell(row: "pd.Series[float]", column: str) -> str:
    """Show a mean to the second digit of its half width; rounding errors count as no spread."""
    factor = _quantity(column).factor
    mean, half_width = factor * row[column], factor * row[f"{column}{_HALF_WIDTH}"]
    if math.isnan(half_width):
        return f"{mean:.4g}"
    if half_width <= 1e-9 * abs(mean):
        return f"{mean:.4g} ± 0"
    decimals = max(0, 1 - math.floor(math.log10(half_width)))
    return f"{mean:,.{decimals}f} ± {half_width:,.{decimals}f}"
