"""Targets of all columns, and the range over training seeds."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from scenarios.frame.statistics import MeanInterval, mean_and_interval
from scenarios.study.targets.target import Goal, Target, Verdict

WORTH = (
    "Better: the whole 95 % interval of the paired gain over the same worlds lies above 0, on the "
    "mean of the learnt columns; where none are in common, intervals that do not touch."
)

LEGEND = (
    "± is half a 95 % interval over worlds, or over the draws of one world; inconclusive: the "
    "interval crosses the target. * the reference has fewer GPUs, which explains a part of the "
    "gain; see the figure at equal GPUs."
)

SEEDS = "training seeds"
SPREAD_FIGURE = "training time"
_MOST_SPREAD = 0.01


@dataclass(frozen=True, kw_only=True)
class MeasuredTargets:
    """Targets of all columns, in the same order in each.

    Attributes
    ----------
    are_seeds
        Whether the columns are one training from several seeds, to be judged together.
    num_controls
        Last columns that have learnt nothing: they are shown, and miss no target.
    """

    columns: tuple[str, ...]
    targets: tuple[tuple[Target, ...], ...]
    are_seeds: bool = True
    num_controls: int = 0

    @property
    def rows(self) -> list[tuple[Target, ...]]:
        """The same target in all columns."""
        return list(zip(*self.targets, strict=True))

    @property
    def judged_rows(self) -> list[tuple[Target, ...]]:
        """The same target in all columns but the controls."""
        return list(zip(*self.targets[: self.num_judged], strict=True))

    @property
    def num_judged(self) -> int:
        """Columns that are not controls."""
        return len(self.columns) - self.num_controls

    @property
    def has_seeds(self) -> bool:
        """Whether there are several seeds."""
        return self.are_seeds and self.num_judged > 1

    def to_plain(self, scope_note: str) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "scope": scope_note,
            "columns": {
                name: [target.to_plain() for target in targets]
                for name, targets in zip(self.columns, self.targets, strict=True)
            },
            "seeds": spread_of_seeds(self).to_plain() if self.has_seeds else None,
        }

    @property
    def missed(self) -> list[str]:
        """Names of targets that a column misses."""
        return self._with_verdict("missed")

    @property
    def inconclusive(self) -> list[str]:
        """Names of targets that lie within the interval of a column."""
        return self._with_verdict("inconclusive")

    @property
    def open_targets(self) -> list[str]:
        """Lines that name the inconclusive and the missed targets, if there are any."""
        named = {"inconclusive": self.inconclusive, "missed": self.missed}
        return [f"{verdict}: {', '.join(names)}" for verdict, names in named.items() if names]

    def _with_verdict(self, verdict: Verdict) -> list[str]:
        rows = self.judged_rows
        return [row[0].name for row in rows if any(one.verdict == verdict for one in row)]

    @property
    def worth(self) -> list[str]:
        """Lines that name, for each control, the targets without a better learnt column.

        The gains over the control follow, where the columns have worlds in common.
        """
        lines = []
        for number in range(self.num_judged, len(self.columns)):
            pairs = [(row[: self.num_judged], row[number]) for row in self.rows]
            known = [(learnt, own) for learnt, own in pairs if not math.isnan(own.value)]
            names = [own.name for learnt, own in known if not _are_better(learnt, own)]
            beyond = f"all but {', '.join(names)}" if names else "all targets"
            if len(names) == len(known):
                beyond = "no target"
            lines.append(f"learnt policies are better than {self.columns[number]} in {beyond}")
            gains = [shown for learnt, control in pairs if (shown := _gain_shown(learnt, control))]
            if gains:
                lines.append(f"gains over {self.columns[number]}, paired: {', '.join(gains)}")
        return lines


def _measure_paired_gain(learnt: Sequence[Target], control: Target) -> MeanInterval | None:
    """Gain of the mean of learnt columns over a control, case by case; None without an interval."""
    num_cases = len(control.values)
    if not num_cases or any(len(one.values) != num_cases for one in learnt):
        return None
    mean = tuple(map(fmean, zip(*(one.values for one in learnt), strict=True)))
    gain = replace(learnt[0], values=mean).gain_over(control)
    return None if gain is None or math.isnan(gain.half_width) else gain


def _are_better(learnt: Sequence[Target], control: Target) -> bool:
    """Whether learnt columns are better than a control, by the whole interval."""
    gain = _measure_paired_gain(learnt, control)
    if gain is None:
        return all(one.is_better_than(control) for one in learnt)
    return gain.low > 0.0


def _gain_shown(learnt: Sequence[Target], control: Target) -> str:
    """Name of a target with the paired gain; worse: the whole interval lies below 0."""
    gain = _measure_paired_gain(learnt, control)
    if gain is None:
        return ""
    unit = control.unit
    is_worse = " (worse)" if gain.high < 0.0 else ""
    spread = short(unit.factor * gain.half_width)
    return f"{control.name} {unit.factor * gain.mean:+.3g} ± {spread}{is_worse}"


def spread_of_seeds(measured: MeasuredTargets) -> Target:
    """Judge several training seeds together: none may miss a target, and their times lie close.

    The value is the range of the mean time against one domain over its mean.
    """
    rows = {row[0].name: row for row in measured.judged_rows}
    times = [1.0 - one.value for one in rows.get(SPREAD_FIGURE, ())]
    is_known = len(times) > 1 and all(map(math.isfinite, times))
    value = (max(times) - min(times)) / (sum(times) / len(times)) if is_known else math.nan
    return Target(
        name=SEEDS,
        definition="range over the seeds of the mean time against one domain, over its mean; no "
        "seed may miss a target",
        reference="the seeds among themselves",
        goal=Goal(sense="below", target=_MOST_SPREAD),
        value=value if not measured.missed else (math.nan if math.isnan(value) else math.inf),
        interval=mean_and_interval(times) if is_known else None,
        is_quick=any(one.is_quick for row in measured.judged_rows for one in row),
        notes=(
            f"{measured.num_judged} of 5 seeds",
            f"missed by at least one: {', '.join(measured.missed)}"
            if measured.missed
            else "none misses a target",
            *(
                [f"inconclusive for at least one: {', '.join(measured.inconclusive)}"]
                if measured.inconclusive
                else []
            ),
        ),
    )


def value_of(target: Target) -> str:
    """Show the value with half its 95 % interval, which is about the mean."""
    shown = target.unit.shown(target.value)
    interval = target.interval
    if interval is None or math.isnan(interval.half_width) or interval.mean != target.value:
        return shown
    return f"{shown} ± {short(target.unit.factor * interval.half_width)}"


def short(half_width: float) -> str:
    """Show half an interval to two digits.

    Examples
    --------
    >>> short(123.4), short(0.0123)
    ('123', '0.012')
    """
    return f"{half_width:.0f}" if half_width >= 10.0 else f"{half_width:.2g}"


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
