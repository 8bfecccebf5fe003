"""Paired comparisons of a run with other methods, and a sentence on what learning was worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from agents.hi_ppo.controls import Control
from agents.replanning.table import RULES
from scenarios.frame.statistics import MeanInterval, paired_difference
from scenarios.study.compare.dynamic_part import CLAIRVOYANT

THIS_RUN, SHIPPED_ROW, FOR_TIME = "this run", "shipped", "its weights, for time"

CONTROL_ROWS: Mapping[str, Control] = MappingProxyType(
    {
        "untrained weights": "untrained",
        "random proposals": "random",
        "nearest neighbours": "neighbours",
    }
)
"""Controls of the run, which have learnt nothing in a part or in all."""

RULE_ROWS = tuple(name for name in RULES if name != CLAIRVOYANT)
"""Rules of re-planning, with a search in every epoch."""

METHODS = (THIS_RUN, SHIPPED_ROW, *CONTROL_ROWS, *RULE_ROWS, CLAIRVOYANT)
"""Rows of a block, in order."""


@dataclass(frozen=True, kw_only=True)
class WorthAgainst:
    """Time of the run less that of another method, as a share of the latter."""

    other: str
    interval: MeanInterval

    @property
    def is_gain(self) -> bool:
        """Whether the whole interval is on the side of the run."""
        return self.interval.high < 0.0

    @property
    def is_loss(self) -> bool:
        """Whether the whole interval is on the side of the other method."""
        return self.interval.low > 0.0


def episode_times(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the times of the methods, one column each, one row per block and draw. [s]"""
    return rows.pivot(index=["block", "draw"], columns="method", values="iteration_time_s")


def best_rule(times_s: pd.DataFrame) -> str:
    """Name the rule of the least mean time in some episodes, in hindsight."""
    return str(times_s[list(RULE_ROWS)].mean().idxmin())


def differences_of(rows: pd.DataFrame) -> tuple[WorthAgainst, ...]:
    """Compare the run with what has learnt nothing, over the episodes of all blocks.

    The best rule is chosen for each block by hindsight, which is in favour of rules.
    """
    times_s = episode_times(rows)
    found = [_difference(times_s, name, times_s[name].to_numpy()) for name in CONTROL_ROWS]
    rules = {block: best_rule(times_s.loc[[block]]) for block in rows["block"].unique()}
    best_s = np.concatenate(
        [times_s.loc[[block], rule].to_numpy() for block, rule in rules.items()]
    )
    run_s = np.concatenate([times_s.loc[[block], THIS_RUN].to_numpy() for block in rules])
    named = f"the best rule of each block ({', '.join(rules.values())})"
    found.append(WorthAgainst(other=named, interval=paired_difference(run_s, best_s)))
    return tuple(found)


def _difference(times_s: pd.DataFrame, other: str, others_s: np.ndarray) -> WorthAgainst:
    interval = paired_difference(times_s[THIS_RUN].to_numpy(), others_s)
    return WorthAgainst(other=other, interval=interval)


def worth_sentence(differences: Sequence[WorthAgainst]) -> str:
    """Say what learning was worth, by the intervals alone.

    Examples
    --------
    >>> gain = WorthAgainst(other="rule A", interval=MeanInterval(mean=-0.02, half_width=0.01))
    >>> even = WorthAgainst(other="rule B", interval=MeanInterval(mean=0.001, half_width=0.01))
    >>> worth_sentence([gain, even])
    'Learning was worth 2.00 ± 1.00 % of the time against rule A; no difference is shown against \
rule B (+0.10 ± 1.00 %).'
    >>> worth_sentence([even])
    'Learning was worth nothing here; no difference is shown against rule B (+0.10 ± 1.00 %).'
    """
    gains = [one for one in differences if one.is_gain]
    losses = [one for one in differences if one.is_loss]
    others = [one for one in differences if not one.is_gain and not one.is_loss]
    parts = [f"Learning was worth {_list(gains, 'of the time') or 'nothing here'}"]
    if losses:
        parts.append(f"it took {_list(losses, 'more time')}")
    if others:
        shown = ", ".join(f"{one.other} ({signed_percent(one.interval)})" for one in others)
        parts.append(f"no difference is shown against {shown}")
    return "; ".join(parts) + "."


def _list(differences: Sequence[WorthAgainst], what: str) -> str:
    return ", ".join(
        f"{100 * abs(one.interval.mean):.2f} ± {100 * one.interval.half_width:.2f} % {what} "
        f"against {one.other}"
        for one in differences
    )


def signed_percent(interval: MeanInterval) -> str:
    """Show a share and its interval with a sign.

    Examples
    --------
    >>> signed_percent(MeanInterval(mean=0.0123, half_width=0.004))
    '+1.23 ± 0.40 %'
    """
    return f"{100 * interval.mean:+.2f} ± {100 * interval.half_width:.2f} %"
