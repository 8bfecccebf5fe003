"""Goodput with failing chips, with learners that do not wait for each other and without.

Assumed: chips fail independently of each other and of their age, and one ends the step of all that
are in step with it: a learner of Decoupled DiLoCo, or the whole job. After a restart, which a
failure begins again, the step is done once more. Merges are hidden, so learners never wait, and
syncers do not fail. Ranges are over all ends of what is assumed, ``predicted`` is of the middle
(geometric means) by the closed form of `des.training.learners.useful_fraction`, and ``simulated``
that of learners as processes there. The bounds: the report's pair lies in the ranges, and the
closed form is within a percentage point of the simulation. ``implied_restart_s`` is the restart at
which the middle would be the measured figure.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from des.plan.decoupled import DecoupledDiLoCo
from des.plan.learners import Learners
from des.training.learners import restarts, run_learners, useful_fraction
from scenarios.reproduce.cases import CaseFile, Count, PositiveNumber, read_form
from scenarios.reproduce.report import Bound, Reproduction
from scenarios.reproduce.sites import IN_SIGHT, Known, RangedForm, draw, range_bound

_SECONDS_PER_YEAR = 365.25 * 86400.0
_NUM_RUNS, _RESTARTS_A_RUN = 8, 1500
"""Seeds of the simulation, and how many restarts long each run is for the whole job."""

_Percent = Annotated[float, Field(gt=0, lt=100)]


class GoodputRow(RangedForm):
    """A job of some chips, as one and as learners: measured goodputs, and failures assumed."""

    ranged: ClassVar = ("chip_years", "restart_s", "step_s")
    num_chips: PositiveNumber
    num_learners: Count
    with_percent: _Percent
    without_percent: _Percent
    chip_years: Known
    restart_s: Known
    step_s: Known

    def failures_per_s(self, figures: dict[str, float], num_learners: int) -> float:
        """Failures of each of some learners. [1/s]"""
        return self.num_chips / num_learners / (figures["chip_years"] * _SECONDS_PER_YEAR)

    def predicted_percent(self, figures: dict[str, float], num_learners: int) -> float:
        """Goodput of some learners by the closed form. [%]"""
        rate = self.failures_per_s(figures, num_learners)
        return 100.0 * useful_fraction(rate, figures["restart_s"], figures["step_s"])

    def implied_restart_s(self, measured: float, num_learners: int) -> float:
        """Restart at which the middle has a measured goodput; negative where none is so good. [s]

        The closed form is an exponential of the restart.
        """
        middle = self.middle()
        ratio = self.predicted_percent({**middle, "restart_s": 0.0}, num_learners) / measured
        return math.log(ratio) / self.failures_per_s(middle, num_learners)

    def simulated_percent(self, num_learners: int, quorum: int) -> float:
        """Goodput of learners as processes at the middle, mean over runs. [%]"""
        figures, mode = self.middle(), DecoupledDiLoCo(quorum=quorum, overlap_steps=1)
        learners = Learners(
            mode=mode,
            step_s=(figures["step_s"],) * num_learners,
            tokens=(1,) * num_learners,
            merge_s=0.0,
        )
        until_s = _RESTARTS_A_RUN / self.failures_per_s(figures, 1)
        rate, shares = self.failures_per_s(figures, num_learners), []
        for seed in range(_NUM_RUNS):
            rngs = np.random.default_rng(seed).spawn(num_learners)
            fails_s = [_failures(rng, rate) for rng in rngs]
            outages_s = [restarts(one, figures["restart_s"]) for one in fails_s]
            history = run_learners(learners, until_s, outages_s=outages_s)
            most = num_learners * until_s / figures["step_s"]
            shares.append(learners.merge_tokens(history.outer_steps) / most)
        return 100.0 * math.fsum(shares) / len(shares)


def _failures(rng: np.random.Generator, rate_per_s: float) -> Iterator[float]:
    """Times of a Poisson process. [s]"""
    now_s = 0.0
    while True:
        now_s += float(rng.exponential(1.0 / rate_per_s))
        yield now_s


def reproduce_cases(path: Path) -> Reproduction:
    """Reproduce the goodputs of a file."""
    rows = read_form(path, CaseFile[GoodputRow]).rows
    frame = compare(rows)
    error = float((frame["simulated"] - frame["predicted"]).abs().max())
    return Reproduction(
        title="Goodput with failing chips, with and without decoupling [%]",
        frame=frame,
        bounds=(
            range_bound(frame),
            Bound.at_most("closed form against the simulation, points", error, 1.0, shown=".2f"),
        ),
        unjudged=tuple(line for row in rows for line in _lines(row)),
        figure=draw(frame),
        shown=("name", "measured", "predicted", "low", "high"),
        notes=(IN_SIGHT, *(row.sentence for row in rows)),
    )


def _lines(row: GoodputRow) -> Iterator[str]:
    """Consequence of the rule alone, and goodput of learners that wait for all."""
    equal = 100.0 * (row.without_percent / 100.0) ** (1.0 / row.num_learners)
    yield (
        f"{row.name}: with restarts equally long, {row.without_percent:g} % without makes "
        f"{equal:.1f} % with, whatever the times; measured {row.with_percent:g} %"
    )
    waiting = row.simulated_percent(row.num_learners, row.num_learners)
    yield f"{row.name}: learners that wait for all others, simulated: {waiting:.1f} %"


def compare(rows: tuple[GoodputRow, ...]) -> pd.DataFrame:
    """Two rows of each job, without and with decoupling: measured, and the range. [%]"""
    found = []
    for row in rows:
        for name, count, measured in (
            ("without", 1, row.without_percent),
            ("with", row.num_learners, row.with_percent),
        ):
            ends = [row.predicted_percent(one, count) for one in row.ends()]
            found.append(
                {
                    "name": f"{row.name}, {name}",
                    "measured": measured,
                    "predicted": row.predicted_percent(row.middle(), count),
                    "low": min(ends),
                    "high": max(ends),
                    "simulated": row.simulated_percent(count, 1),
                    "implied_restart_s": row.implied_restart_s(measured, count),
                }
            )
    return pd.DataFrame(found)
