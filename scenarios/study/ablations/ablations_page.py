"""Tables and reports of ablations, with means over networks and training seeds, both drawn."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.table import Table
from scipy.special import stdtrit

from agents.hi_ppo.controls import CONTROLS
from des.base.document import DOCUMENT
from des.base.lazy import lazy_imports
from scenarios.frame.plots import interval_figure
from scenarios.frame.report import PageTable, Repetition, Report
from scenarios.frame.rows_report import group_values, groups_report
from scenarios.frame.statistics import CONFIDENCE, MeanInterval, mean_and_interval
from scenarios.study.ablations.variants import HI_PPO
from scenarios.study.trained_plans import example_views
from scenarios.suites import suite

with lazy_imports(__name__):
    from _typeshed import DataclassInstance
    from rich.console import Console


def ablation_report(frame: pd.DataFrame, worth: Sequence[str], repeat: Repetition) -> Report:
    """Return the report: the gap of each variant over networks and seeds.

    Parameters
    ----------
    worth
        What learning is worth, a sentence a line, see `scenarios.study.ablations.ablations_page`.
    """
    percent = frame.assign(gap=100.0 * frame["gap"]).dropna(subset=["gap"])
    groups = {
        str(name): own.groupby("network")["gap"].mean().to_numpy(dtype=float)
        for name, own in percent.groupby("variant", sort=False)
    }
    figure = interval_figure(
        groups,
        name="gaps",
        title="Gap to the best plan known, by variant",
        label="gap [%]",
        points="each network, mean over seeds",
    )
    means = {name: float(values.mean()) for name, values in groups.items()}
    best = min(means, key=lambda name: means[name]) if means else "none"
    views = example_views(suite("eval_static").with_domains(4).world(0, 0))
    return Report(
        title="Ablations of Hi-PPO's placement",
        question="What is each part of the placement worth?",
        answer=f"Least gap: {best}, {means[best]:.2f} % on the mean." if means else "No plan fits.",
        repeat=repeat,
        first=views.first,
        tables=(
            PageTable(
                title="Mean gap by variant",
                head=("variant", "gap [%]", "networks"),
                rows=tuple((name, f"{means[name]:.2f}", str(len(groups[name]))) for name in groups),
            ),
            PageTable(
                title="What learning is worth", head=("",), rows=tuple((one,) for one in worth)
            ),
        ),
        figures=(figure, *views.more) if groups else views.more,
    )


def ablation_table(frame: pd.DataFrame) -> Table:
    """Gaps by variant and number of domains."""
    table = Table(title="gap to the best plan known [%]: mean ± 95 % interval / 95th percentile")
    sizes = sorted(frame["num_domains"].unique())
    table.add_column("variant")
    for size in sizes:
        table.add_column(f"K = {size}", justify="right")
    for variant in frame["variant"].unique():
        own = frame[frame["variant"] == variant]
        table.add_row(variant, *(_cell(own[own["num_domains"] == size]) for size in sizes))
    return table


def _cell(own: pd.DataFrame) -> str:
    """Figures over networks on which the plans of all seeds fit; how often one does not."""
    gaps = 100.0 * own.pivot(index="seed", columns="network", values="gap")
    fitting = gaps.dropna(axis="columns")
    misfits = int(gaps.isna().sum().sum())
    told = f" ({misfits} do not fit)" if misfits else ""
    if fitting.empty:
        return told.strip()
    found = over_seeds_and_networks(fitting.to_numpy())
    tail = fitting.stack().quantile(0.95)
    return f"{found.mean:.2f} ± {found.half_width:.2f} / {tail:.1f}{told}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """Difference of the gaps of a control and of the trained policies, in points, paired.

    Attributes
    ----------
    control
        What has learnt nothing, see `agents.hi_ppo.controls.CONTROLS`; the look-ahead is the same.
    num_domains
        Of the networks; None: of all sizes together.
    points
        Mean over seeds and networks; positive where the trained policies are nearer to the best
        plan.
    """

    control: str
    num_domains: int | None
    points: MeanInterval

    @property
    def is_shown(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.points.mean - self.points.half_width > 0.0

    def __str__(self) -> str:
        size = "all sizes" if self.num_domains is None else f"K = {self.num_domains}"
        told = "" if self.is_shown else ": no gain is shown"
        return (
            f"{size}, learned placements against {self.control}: "
            f"{self.points.mean:.2f} ± {self.points.half_width:.2f} points nearer to the best plan"
            f"{told}"
        )


def worth_of(frame: pd.DataFrame) -> list[Worth]:
    """Return what learning is worth with the look-ahead, for each size and for all together.

    Parameters
    ----------
    frame
        Rows of `scenarios.study.ablations.command.compare_variants`. Networks on which a plan
        does not fit are left out.
    """
    sizes = sorted(frame["num_domains"].unique())
    every = [(int(size), frame[frame["num_domains"] == size]) for size in sizes]
    parts = [*every, *([(None, frame)] if len(sizes) > 1 else [])]
    return [one for size, part in parts for one in _of_size(size, part)]


def _of_size(size: int | None, part: pd.DataFrame) -> Iterator[Worth]:
    part = part[part["variant"].isin((HI_PPO, *CONTROLS))]
    gaps = 100.0 * part.pivot(index="seed", columns=["variant", "network"], values="gap")
    for control in CONTROLS:
        points = gaps[control].to_numpy() - gaps[HI_PPO].to_numpy()
        points = points[:, np.isfinite(points).all(axis=0)]
        if points.size:
            yield Worth(control=control, num_domains=size, points=over_seeds_and_networks(points))


def over_seeds_and_networks(values: np.ndarray) -> MeanInterval:
    """Mean of a table with its 95 % interval, for other seeds and other networks.

    Parameters
    ----------
    values
        One row per training seed, one column per network, shaped (S, N). With one of either, only
        the others are taken as drawn.

    Raises
    ------
    ValueError
        If the table is empty or a figure is not finite.

    Notes
    -----
    Both rows and columns are drawn, so the variance of the mean is estimated by ``a + b``, that of
    the means of networks over N and that of the means of seeds over S; what neither explains counts
    twice, so intervals are rather too wide. Degrees of freedom are those of Satterthwaite [1]_.

    References
    ----------
    .. [1] F. E. Satterthwaite, "An approximate distribution of estimates of variance components",
       Biometrics Bulletin 2(6), 1946.

    Examples
    --------
    >>> interval = over_seeds_and_networks(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
    >>> interval.mean, round(interval.half_width, 4)  # seeds agree: networks alone count
    (2.0, 2.4841)
    """
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"values must be a non-empty table of finite numbers, got {values!r}")
    num_seeds, num_networks = values.shape
    if min(num_seeds, num_networks) == 1:
        return mean_and_interval(values.ravel())
    parts = [
        float(means.var(ddof=1)) / len(means)
        for means in (values.mean(axis=0), values.mean(axis=1))
    ]
    variance = sum(parts)
    mean = float(values.mean())
    if variance == 0.0:
        return MeanInterval(mean=mean, half_width=0.0)
    shares = [part / variance for part in parts]
    freedom = 1.0 / (shares[0] ** 2 / (num_networks - 1) + shares[1] ** 2 / (num_seeds - 1))
    quantile = float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
    return MeanInterval(mean=mean, half_width=quantile * math.sqrt(variance))


def comparison_report(
    config: DataclassInstance,
    prog: str,
    frame: pd.DataFrame,
    *,
    by: str,
    value: str,
    label: str,
    title: str,
    question: str,
    lines: Sequence[str],
) -> Report:
    """Return the report: ``value`` by method, the column ``by``; a point is a network's mean."""
    means = frame.groupby([by, "network"], sort=False)[value].mean()
    return groups_report(
        config,
        prog,
        group_values(means.groupby(level=by, sort=False)),
        name="methods",
        title=title,
        question=question,
        answer="; ".join(lines) + ".",
        label=label,
        points="each network, mean over seeds",
    )


def show_verdicts(
    console: Console, table: Table, lines: Sequence[str], *, frame: pd.DataFrame, csv: Path
) -> None:
    """Print the table, the verdicts and the file of the rows, or put all into the document."""
    DOCUMENT.add(rows=frame, verdicts=list(lines), out=csv.parent)
    console.print(table)
    for line in lines:
        console.print(line, soft_wrap=True)
    sys.stdout.write(f"rows: {csv}\n")
