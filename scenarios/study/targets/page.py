"""The table of targets as a part of a page."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from scenarios.study.targets.target import Target
from scenarios.study.targets.target_table import (
    LEGEND,
    WORTH,
    MeasuredTargets,
    spread_of_seeds,
    value_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPart:
    """Measured targets as a part of a report."""

    measured: MeasuredTargets
    note: str

    @property
    def html(self) -> str:
        """The table, everything in it escaped."""
        return table_html(self.measured, self.note)


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


_TABLE = """<p class="note">{note}</p>
<div class="wide" tabindex="0" role="region" aria-label="Targets"><table class="targets">
<thead><tr><th>target</th><th>target (stretch)</th>{head}<th>definition</th></tr></thead>
<tbody>
{body}
</tbody></table></div>
{seeds}{worth}
<p class="note">{legend}</p>"""
