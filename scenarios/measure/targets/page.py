"""The table of targets as HTML, on a page of its own or within another."""

import html
from collections.abc import Sequence

from scenarios.frame.pictures import Picture, picture_html
from scenarios.measure.targets.target import Target
from scenarios.measure.targets.target_table import (
    LEGEND,
    WORTH,
    MeasuredTargets,
    spread_of_seeds,
    value_of,
)


def target_page(
    measured: MeasuredTargets, command: str, scope_note: str, pictures: Sequence[Picture] = ()
) -> str:
    """Return the table, and pictures below it, as one HTML file that needs nothing else."""
    return _PAGE.format(
        style=_STYLE,
        table=table_html(measured, scope_note),
        pictures="".join(map(picture_html, pictures)),
        command=html.escape(command),
    )


def table_html(measured: MeasuredTargets, scope_note: str) -> str:
    """Return the table as a part of a page, with what it rests on."""
    head = "".join(f"<th>{html.escape(name)}</th><th>verdict</th>" for name in measured.columns)
    body = "\n".join(map(_row_html, measured.rows))
    return _TABLE.format(
        head=head,
        body=body,
        note=html.escape(scope_note),
        worth="".join(f"<p>{html.escape(line)}</p>" for line in measured.worth),
        legend=html.escape(f"{LEGEND} {WORTH}" if measured.num_controls else LEGEND),
        seeds=_seeds_html(measured),
    )


def _row_html(row: Sequence[Target]) -> str:
    first = row[0]
    cells = "".join(
        f"<td>{html.escape(value_of(target))}</td>"
        f'<td class="{target.verdict.replace(" ", "-")}">{html.escape(target.mark)}</td>'
        for target in row
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for target in row for note in target.notes)
    return (
        f'<tr><th scope="row">{html.escape(first.name)}</th>'
        f"<td>{html.escape(first.goal.shown(first.unit))}</td>{cells}"
        f"<td><details><summary>{html.escape(first.definition)}</summary>"
        f"<p>Reference: {html.escape(first.reference)}.</p><ul>{notes}</ul></details></td></tr>"
    )


def _seeds_html(measured: MeasuredTargets) -> str:
    if not measured.has_seeds:
        return ""
    seeds = spread_of_seeds(measured)
    text = (
        f"{seeds.name}: {seeds.unit.shown(seeds.value)}, {seeds.verdict}; {'; '.join(seeds.notes)}"
    )
    return f"<p>{html.escape(text)}</p>"


_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --paper: #ffffff; --faint: #d8dee4;
  --soft: #59636e; --good: #1a7f37; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117;
  --faint: #3d444d; --soft: #9198a1; --good: #3fb950; --bad: #f85149; } }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 90rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.5 system-ui, sans-serif; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.4rem 0.7rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--faint); }
td { white-space: nowrap; } td:last-child { white-space: normal; min-width: 24rem; }
img { max-width: 100%; }
summary { cursor: pointer; } details p, li, .note { color: var(--soft); font-size: 0.9rem; }
.exceeded, .met { color: var(--good); font-weight: 600; }
.missed { color: var(--bad); font-weight: 600; }
.inconclusive, .not-measured { color: var(--soft); }
"""

_TABLE = """<p class="note">{note}</p>
<div class="wide"><table class="targets">
<thead><tr><th>target</th><th>target (stretch)</th>{head}<th>definition</th></tr></thead>
<tbody>
{body}
</tbody></table></div>
{seeds}{worth}
<p class="note">{legend}</p>"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>Targets</title>
<style>{style}</style>
</head>
<body>
<h1>Targets</h1>
{table}
{pictures}<h2>How to repeat</h2>
<pre><code>{command}</code></pre>
</body>
</html>
"""
