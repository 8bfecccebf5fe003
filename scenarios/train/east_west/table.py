"""The table of a run: each block's methods, with what they take against the run, in pairs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from agents.answer.sections import Section
from scenarios.frame.statistics import (
    MeanInterval,
    endless_or_mean,
    mean_and_interval,
    paired_difference,
)
from scenarios.study.compare.dynamic_part import CLAIRVOYANT
from scenarios.study.targets.target import MILLISECONDS, Goal, Target, measured
from scenarios.train.east_west.worth import (
    FOR_TIME,
    METHODS,
    RULE_ROWS,
    SHIPPED_ROW,
    THIS_RUN,
    best_rule,
    episode_times,
    signed_percent,
)

_HEAD = (
    "method",
    "iteration [s]",
    "over clairvoyant",
    "against this run",
    "moves",
    "decision [ms]",
)


@dataclass(frozen=True, kw_only=True)
class MethodRow:
    """Figures of a method over the episodes of a block.

    Attributes
    ----------
    time_s
        Of an iteration, moves included; endless where they leave time for nothing. [s]
    excess
        Over the clairvoyant, as a share.
    against_run
        Less the time of the run, as a share of that.
    num_moves
        Of an episode.
    decision_s
        NaN where there is none.
    """

    method: str
    time_s: MeanInterval
    excess: float
    against_run: MeanInterval
    num_moves: float
    decision_s: float

    @property
    def cells(self) -> tuple[str, ...]:
        """Texts of the table."""
        own = self.method == THIS_RUN
        return (
            self.method,
            _or_endless(self.time_s.mean, f"{self.time_s.mean:.2f} ± {self.time_s.half_width:.2f}"),
            _or_endless(self.excess, f"{100 * self.excess:.2f} %"),
            "" if own else _or_endless(self.against_run.mean, signed_percent(self.against_run)),
            f"{self.num_moves:.1f}",
            "" if math.isnan(self.decision_s) else f"{1e3 * self.decision_s:.1f}",
        )


def _or_endless(mean: float, text: str) -> str:
    """Text of a mean, or that it is endless as changes of plan left time for nothing."""
    return "endless" if math.isinf(mean) else text


def block_rows(rows: pd.DataFrame) -> tuple[MethodRow, ...]:
    """Sum up the episodes of one block, in the order of `METHODS`."""
    times_s = episode_times(rows)
    bound_s, run_s = times_s[CLAIRVOYANT].to_numpy(), times_s[THIS_RUN].to_numpy()
    found = []
    for method in METHODS:
        own = rows[rows["method"] == method]
        own_s = times_s[method].to_numpy()
        found.append(
            MethodRow(
                method=method,
                time_s=endless_or_mean(own_s),
                excess=float(np.mean(own_s / bound_s - 1.0)),
                against_run=paired_difference(own_s, run_s),
                num_moves=float(own["num_moves"].mean()),
                decision_s=float(own["decision_time_s"].mean()),
            )
        )
    return tuple(found)


def table_sections(rows: pd.DataFrame, named: dict[str, str]) -> tuple[Section, ...]:
    """Return a section for each block; ``named`` describes blocks by name."""
    found = []
    for block, own in rows.groupby("block", sort=False):
        num_draws = own["draw"].nunique()
        cells = tuple(one.cells for one in block_rows(own))
        title = f"{str(block).capitalize()}: {named[str(block)]}; {num_draws} held-out episodes"
        found.append(Section(title=title, head=_HEAD, rows=cells))
    return tuple(found)


def value_sections(rows: pd.DataFrame, objective: str) -> tuple[Section, ...]:
    """Return the worth of policies by the objective of a run; nothing where that is time.

    Differences of R are from the same weights deciding for time alone, in pairs.
    """
    if FOR_TIME not in set(rows["method"]):
        return ()
    found = []
    for block, own in rows.groupby("block", sort=False):
        values = own.pivot(index="draw", columns="method", values="value")
        means = own.groupby("method")[["iteration_time_s", "utilisation", "bytes_per_token"]].mean()
        cells = []
        for method in (FOR_TIME, THIS_RUN, SHIPPED_ROW):
            more = mean_and_interval((values[method] - values[FOR_TIME]).to_numpy())
            time_s, use, sent = map(float, means.loc[method].to_numpy())
            cells.append(
                (
                    method,
                    f"{values[method].mean():.4f}",
                    f"{more.mean:+.4f} ± {more.half_width:.4f}",
                    f"{time_s:.2f}",
                    f"{100 * use:.1f} %",
                    f"{sent / 1e3:.2f}",
                )
            )
        found.append(
            Section(
                title=f"{str(block).capitalize()}, by the objective {objective}",
                head=(
                    "method",
                    "R",
                    "more than for time",
                    "iteration [s]",
                    "utilisation",
                    "kB/token",
                ),
                rows=tuple(cells),
            )
        )
    return tuple(found)


def run_targets(rows: pd.DataFrame, method: str, *, most_over_shipped: float) -> tuple[Target, ...]:
    """Judge a method by its episodes; every verdict is by the paired 95 % interval.

    Parameters
    ----------
    most_over_shipped
        Target of the time over that of the shipped weights, as a share.
    """
    found = []
    for name, own in rows.groupby("block", sort=False):
        block, times_s = str(name), episode_times(own)
        rule = best_rule(times_s)
        over_rule = _over(times_s, method, rule)
        found.append(
            _target(
                name=f"over the best rule, {block.split(maxsplit=1)[0]}",
                definition="time of an episode over that under the rule of least mean time in the "
                "block, with a search in every epoch, less 1",
                reference=f"the best of {', '.join(RULE_ROWS)} in hindsight; here {rule}",
                goal=Goal(sense="at most", target=0.0),
                values=over_rule,
            )
        )
    times_s = episode_times(rows)
    found.append(
        _target(
            name="over shipped weights",
            definition="time of an episode over that under the shipped weights, less 1",
            reference="hi_ppo-0",
            goal=Goal(sense="at most", target=most_over_shipped),
            values=_over(times_s, method, SHIPPED_ROW),
        )
    )
    decisions_s = rows.loc[rows["method"] == method, "decision_time_s"].to_numpy()
    value, interval = measured(decisions_s.tolist())
    decision = Target(
        name="mean decision",
        definition="wall time of a decision, mean of an episode",
        reference="1 s",
        goal=Goal(sense="at most", target=1.0, stretch=0.005),
        value=value,
        interval=interval,
        unit=MILLISECONDS,
    )
    return (*found, decision)


def _over(times_s: pd.DataFrame, method: str, other: str) -> Sequence[float]:
    shares: list[float] = (times_s[method] / times_s[other] - 1.0).tolist()
    return shares


def _target(
    *, name: str, definition: str, reference: str, goal: Goal, values: Sequence[float]
) -> Target:
    value, interval = measured(values)
    return Target(
        name=name,
        definition=definition,
        reference=reference,
        goal=goal,
        value=value,
        interval=interval,
        notes=(f"{len(values)} episodes",),
    )
