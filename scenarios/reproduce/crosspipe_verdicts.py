"""Verdicts on CrossPipe's tables for each model, its assumptions, and the effect of other ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import pandas as pd

from des import Transport
from des.base.names import counted
from scenarios.reproduce.cases import CaseFile
from scenarios.reproduce.crosspipe_runs import (
    ACTIVATION_BYTES,
    BLOCKING,
    COLUMNS,
    OVERLAPPED,
    WEIGHT_INPUT_BYTES,
    CrossPipeRun,
    Delay,
    DelayRow,
    ScheduleColumn,
)
from scenarios.reproduce.report import Bound

ERROR_COLUMNS = ("1f1b", "zb_h1", "greedy_1x")
"""Columns whose mean absolute error is bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another explanation of what the plain simulation misses."""

    transport: Transport = OVERLAPPED
    only_elsewhere: bool = False
    overhead_s: float = 0.0

    def transport_of(self, column: ScheduleColumn) -> Transport:
        """Rule for messages in a column."""
        applies = column.from_elsewhere or not self.only_elsewhere
        return self.transport if applies else OVERLAPPED


_ONE_IN_FLIGHT = Transport(endpoints="one_in_flight")
_HALF_DUPLEX = Transport(half_duplex=True)
_RIVALS = {
    "no stall": Rival(),
    "the stall for all schedules": Rival(transport=BLOCKING),
    "one message in flight a sender": Rival(transport=_ONE_IN_FLIGHT),
    "one message in flight a sender, 1f1b and zb_h1 only": Rival(
        transport=_ONE_IN_FLIGHT, only_elsewhere=True
    ),
    "directions that share a wire": Rival(transport=_HALF_DUPLEX),
    "directions that share a wire, 1f1b and zb_h1 only": Rival(
        transport=_HALF_DUPLEX, only_elsewhere=True
    ),
    "20 ms more on the wire a message (best of 5 ms steps on the public rows)": Rival(
        overhead_s=0.020
    ),
}
_STALL_NOTES = (
    "The one constant is the sender stall: the part of the time until its message has arrived for "
    "which a sender does nothing else, 0 or 1.",
    "It is 1 for 1f1b, zb_h1 and zb_v, whose published figures are the same for a latency as for a "
    "transfer of that length, as blocking sends make them.",
    "It is 0 for CrossPipe's own schedules, where latency costs less than transfer; they run on an "
    "engine that keeps sending apart from computing.",
    "That it applies to some columns and not to others is our inference from the published "
    "figures. It was chosen on the five public rows of 2 data centres.",
)
_SHARES = (0.25, 0.5, WEIGHT_INPUT_BYTES / ACTIVATION_BYTES, 1.0)
_SHARE_COLUMNS = ("greedy_1x", "greedy_2x")


def stall_notes(rows: Sequence[DelayRow]) -> list[str]:
    """Say what the sender stall is, and the mean absolute error of other explanations."""
    notes = [*_STALL_NOTES, f"Mean absolute error over {', '.join(ERROR_COLUMNS)} otherwise:"]
    return notes + [f"- {name}: {_mean_error(rows, rival):.2%}" for name, rival in _RIVALS.items()]


def _mean_error(rows: Sequence[DelayRow], rival: Rival) -> float:
    """Mean absolute error of the judged cells, of which there is one."""
    errors = []
    for row in rows:
        for name in judge_columns(row.published):
            column = COLUMNS[name]
            orders = column.orders(CrossPipeRun.of(row.delay, column).pipeline)
            run = CrossPipeRun.of(_longer(row.delay, rival.overhead_s), column)
            ours_s = run.seconds_per_microbatch(orders, rival.transport_of(column))
            errors.append(abs(ours_s / row.published[name] - 1.0))
    return _mean(errors)


def judge_columns(published: Mapping[str, float]) -> list[str]:
    """Published columns that count for the error."""
    return [name for name in ERROR_COLUMNS if name in published]


def _longer(delay: Delay, overhead_s: float) -> Delay:
    """The delay with more time on the wire; where data centres are not apart, none."""
    return delay if delay.is_free else replace(delay, transfer_s=delay.transfer_s + overhead_s)


def share_notes(rows: Sequence[DelayRow]) -> list[str]:
    """Say what part of the activations is kept for W, and how much other parts matter."""
    names = [name for name in _SHARE_COLUMNS if any(name in row.published for row in rows)]
    notes = [
        f"Memory: {WEIGHT_INPUT_BYTES:g} of {ACTIVATION_BYTES:g} parts of the activations are kept "
        "from D to W (assumed, after the zero-bubble paper)."
    ]
    if names:
        notes.append("Mean ratio to the published figure, plain, for other shares:")
    for share in _SHARES if names else ():
        told = [f"{name} {_mean_ratio(rows, name, share):.3f}" for name in names]
        notes.append(f"- {share:.2f}: {', '.join(told)}")
    return notes


def _mean_ratio(rows: Sequence[DelayRow], name: str, share: float) -> float:
    """Mean of ours to published over the rows that have the column, of which there is one."""
    ratios = []
    for row in rows:
        if name in row.published:
            run = CrossPipeRun.of(row.delay, COLUMNS[name], share * ACTIVATION_BYTES)
            ours_s = run.seconds_per_microbatch(COLUMNS[name].orders(run.pipeline))
            ratios.append(ours_s / row.published[name])
    return _mean(ratios)


RANKED_COLUMNS = (*ERROR_COLUMNS, "greedy_2x")
TARGETS = {"plain": "mean_error_plain", "with the stall": "mean_error_with_the_stall"}
"""Name of the target for the mean absolute error of each model."""

OTHER_GROUPS = {
    "greedy_2x": ("greedy_2x",),
    "optimal": ("optimal_ud_1x", "optimal_wave_1x", "optimal_ud_2x", "optimal_wave_2x"),
    "zb_v": ("zb_v",),
}
"""Further columns in groups, each held against a target of its own in the model with the stall."""

CLEAR_DIFFERENCE = 0.03
_EXACT_COLUMNS = ("1f1b", "zb_h1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A row and ours: seconds per microbatch by model and schedule."""

    number: int
    row: DelayRow
    ours: Mapping[str, Mapping[str, float]]

    @property
    def errors(self) -> dict[str, list[float]]:
        """Absolute error of each judged cell, by model."""
        names = judge_columns(self.row.published)
        return {model: self.errors_of(model, names) for model in self.ours}

    def errors_of(self, model: str, columns: Sequence[str]) -> list[float]:
        """Absolute errors of a model in those of the columns that are published."""
        published, ours = self.row.published, self.ours[model]
        return [abs(ours[name] / published[name] - 1.0) for name in columns if name in published]

    def misranked(self, model: str, columns: Sequence[str]) -> list[str]:
        """Clear pairs of the columns that are not so in ours: "fast < slow"."""
        ours = self.ours[model]
        pairs = clear_pairs(self.row.published, columns)
        return [f"{fast} < {slow}" for fast, slow in pairs if not ours[fast] < ours[slow]]


def clear_pairs(published: Mapping[str, float], columns: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of the columns, the faster first, whose published figures differ by more than 3 %."""
    present = [name for name in published if name in columns]
    return [
        (fast, slow)
        for fast, slow in permutations(present, 2)
        if published[slow] > published[fast] * (1.0 + CLEAR_DIFFERENCE)
    ]


def error_bounds(compared: Sequence[Compared], cases: CaseFile[DelayRow]) -> list[Bound]:
    """The error and the ranking of each model, where there are cells or clear pairs."""
    targets = cases.targets
    num_pairs = _num_clear_pairs(compared, RANKED_COLUMNS)
    judged = []
    for model, target in TARGETS.items():
        errors = [error for each in compared for error in each.errors[model]]
        if errors:
            cells = counted(len(errors), "cell")
            named = f"mean absolute error {model}, {cells} of {', '.join(ERROR_COLUMNS)}"
            judged.append(Bound.at_most(named, _mean(errors), targets[target], shown=".2%"))
        if num_pairs:
            wrong = _num_misranked(compared, model, RANKED_COLUMNS)
            named = (
                f"pairs ranked other than published {model}, of {num_pairs} clear ones over "
                f"{', '.join(RANKED_COLUMNS)}"
            )
            judged.append(Bound.at_most(named, wrong, 0, shown=".0f"))
    for group, columns in OTHER_GROUPS.items():
        errors = [error for each in compared for error in each.errors_of("with the stall", columns)]
        if errors:
            named = f"mean absolute error with the stall, {counted(len(errors), 'cell')} of {group}"
            target = f"mean_error_{group}"
            judged.append(
                Bound.at_most(
                    named,
                    _mean(errors),
                    targets[target],
                    recorded=cases.recorded.get(target),
                    shown=".2%",
                )
            )
    return judged


def unjudged(compared: Sequence[Compared]) -> list[str]:
    """The ranking over all published columns, some of which no bound is about."""
    published = {name for each in compared for name in each.row.published}
    left_out = [name for name in COLUMNS if name in published and name not in RANKED_COLUMNS]
    num_pairs = _num_clear_pairs(compared, tuple(COLUMNS))
    if not left_out or not num_pairs:
        return []
    return [
        f"ranking {model} over all columns: {_num_misranked(compared, model, tuple(COLUMNS))} of "
        f"{num_pairs} clear pairs are otherwise; no target is about that of {', '.join(left_out)}"
        for model in TARGETS
    ]


def ranking_notes(compared: Sequence[Compared]) -> list[str]:
    """Rank correlation of each row over all published columns, and what is ranked otherwise."""
    notes = []
    for each in compared:
        figures = pd.Series(each.row.published)
        if figures.nunique() < 2:
            continue
        for model, ours in each.ours.items():
            told = []
            of_ours = pd.Series(ours)[figures.index]
            if of_ours.nunique() > 1:
                correlation = figures.corr(of_ours, method="spearman")
                told.append(f"rank correlation {correlation:.3f}")
            wrong = each.misranked(model, tuple(COLUMNS))
            told.append(f"clear pairs ranked otherwise: {', '.join(wrong) if wrong else 'none'}")
            notes.append(f"Row {each.number} ({each.row}), {model}: {'; '.join(told)}.")
    return notes


def delayed_notes(compared: Sequence[Compared]) -> list[str]:
    """The error without the rows of no delay, some of whose cells are exact by construction."""
    free = [each for each in compared if each.row.delay.is_free]
    num_exact = sum(name in each.row.published for each in free for name in _EXACT_COLUMNS)
    if not num_exact:
        return []
    notes = [
        f"{counted(num_exact, 'cell')} of {' and '.join(_EXACT_COLUMNS)} without delay, judged as "
        "the others, are exact by construction: D and W solve the public row without delay for "
        "them."
    ]
    told = []
    for model in TARGETS:
        errors = [
            error for each in compared if not each.row.delay.is_free for error in each.errors[model]
        ]
        if errors:
            told.append(f"{model} {_mean(errors):.2%} of {counted(len(errors), 'cell')}")
    if told:
        notes.append(f"Mean absolute error in the rows with a delay alone: {', '.join(told)}.")
    return notes


def _num_clear_pairs(compared: Sequence[Compared], columns: Sequence[str]) -> int:
    return sum(len(clear_pairs(each.row.published, columns)) for each in compared)


def _num_misranked(compared: Sequence[Compared], model: str, columns: Sequence[str]) -> int:
    return sum(len(each.misranked(model, columns)) for each in compared)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
