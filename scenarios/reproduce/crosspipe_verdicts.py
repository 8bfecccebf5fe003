"""Verdicts on CrossPipe's tables: the mean absolute error and the ranking, for each model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import pandas as pd

from des.base.names import counted
from scenarios.reproduce.bound import Bound
from scenarios.reproduce.cases import CaseFile
from scenarios.reproduce.crosspipe_assumptions import ERROR_COLUMNS, judged_columns
from scenarios.reproduce.crosspipe_runs import COLUMNS, DelayRow

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
        names = judged_columns(self.row.published)
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
