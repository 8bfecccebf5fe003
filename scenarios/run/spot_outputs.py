"""Files and texts of a training run on a world whose sites come and go."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

import numpy as np

from agents.replanning.spot.table import SpotCase
from des.base.flags import to_dict
from des.figures.figure import Figure, panel_figure
from des.figures.marks import Boxes
from des.figures.palette import BLUE
from des.figures.panels import Axis, named_rows
from des.spot.world import SpotHistory
from scenarios.frame.outputs import OutputChoice, repetition_of
from scenarios.frame.report import PageTable, Report
from scenarios.run.training_run_config import PROG, Config

IDLE = (
    *("placement", "parallelism", "replicas", "shares", "corrections", "dynamics", "loads"),
    *("arrivals_per_s", "mean_duration_s", "gpu_fraction", "memory_fraction", "most_jobs"),
    *("replay_loads", "replan_threshold", "replan_every", "pays_bytes"),
    *("link_delay_s", "links_in_use", "link_noise", "link_belief"),
)
"""Flags without effect where sites come and go: links stand at base figures, nothing else runs."""


@dataclass(frozen=True, kw_only=True)
class SpotRun:
    """A run, and what the other rules make of the same course.

    ``held`` is the offer that is held in each tick; ``most_tokens`` those of a clairvoyant;
    ``horizons_h`` those of the rules [h]; ``idle`` are the flags that say nothing.
    """

    case: SpotCase
    held: tuple[int, ...]
    histories: dict[str, SpotHistory]
    horizons_h: dict[str, float]
    idle: frozenset[str]
    most_tokens: float
    rule: str

    @property
    def history(self) -> SpotHistory:
        """History of the rule that decides."""
        return self.histories[self.rule]

    def share(self, history: SpotHistory) -> float:
        """Tokens of a history over the clairvoyant's; 1 where no site was up for long enough."""
        return history.tokens / self.most_tokens if self.most_tokens else 1.0


def spot_files(config: Config, found: SpotRun) -> dict[str, bytes]:
    """Make the content of all files."""
    course, offers = found.case.world.course, found.case.world.offers
    names = [*offers.names, ""]
    tables = {
        "sites": {
            "time_s": [tick * course.tick_s for tick in range(course.num_ticks)],
            **{
                name: up.astype(int).tolist()
                for name, up in zip(course.sites, course.up.T, strict=True)
            },
            "held": [names[offer] for offer in found.held],
        },
        "rules": {
            "rule": list(found.histories),
            "horizon_h": list(found.horizons_h.values()),
            **{
                name: [values[name] for values in map(_figures, found.histories.values())]
                for name in _figures(found.history)
            },
        },
    }
    choice = OutputChoice(figures=config.figures, parquet=config.parquet)
    head, *rows = _cells(found)
    answer, *rest = _answer(found)
    page = Report(
        title=_title(config),
        question="What does the job train, and what does it lose, as sites come and go?",
        answer=answer,
        repeat=repetition_of(PROG, config),
        tables=(
            PageTable(title="Rules on this course", head=head, rows=tuple(rows), notes=tuple(rest)),
        ),
        figures=(spot_figure(found),),
    )
    text = json.dumps(spot_summary(config, found), indent=2, allow_nan=False) + "\n"
    return choice.row_files(tables) | {"result.json": text.encode()} | choice.report_files(page)


def spot_summary(config: Config, found: SpotRun) -> dict[str, object]:
    """Return the content of result.json; a horizon without end is null."""
    law, left_out = found.case.law, {"out", "figures", "parquet", *found.idle}
    return {
        **_figures(found.history),
        "horizon_h": {
            name: own if math.isfinite(own) else None for name, own in found.horizons_h.items()
        },
        "share_of_clairvoyant": found.share(found.history),
        "clairvoyant_tokens": found.most_tokens,
        "rules": {name: _figures(one) for name, one in found.histories.items()},
        "offers": list(found.case.world.offers.names),
        "share_up": {site.name: site.share_up for site in law.sites},
        "config": {name: to for name, to in to_dict(config).items() if name not in left_out},
    }


def _figures(history: SpotHistory) -> dict[str, float]:
    return asdict(history) | {"effective_time_ratio": history.effective_time_ratio}


def _answer(found: SpotRun) -> tuple[str, ...]:
    """The answer, then what stands beside it."""
    history, course = found.history, found.case.world.course
    ups = zip(course.sites, course.shares.tolist(), strict=True)
    paid = "" if history.usd == 0.0 else f"; {history.usd:,.0f} USD"
    return (
        f"{history.tokens:.4g} tokens in {history.duration_s / 3600:.3g} h, "
        f"{history.tokens / history.duration_s:,.0f} a second: "
        f"{100 * found.share(history):.1f} % of what a clairvoyant trains",
        f"effective training time {100 * history.effective_time_ratio:.1f} %: "
        f"{history.num_moves} moves, {history.num_losses} losses of sites and "
        f"{history.num_failures} failures of servers, {history.lost_s:,.0f} s of work lost{paid}",
        f"up in this course: {', '.join(f'{name} {100 * share:.0f} %' for name, share in ups)}",
        "share: of a clairvoyant's tokens; effective: training time that was not lost",
    )


def _cells(found: SpotRun) -> list[tuple[str, ...]]:
    """Head and rows of the table of rules, the best first."""
    rows = sorted(found.histories.items(), key=lambda item: -item[1].tokens)
    head = ("rule", "horizon", "share", "tokens/s", "effective", "moves", "losses", "USD")
    return [
        head,
        *(
            (
                name,
                f"{found.horizons_h[name]:.3g} h".replace("inf h", "-"),
                f"{100 * found.share(one):.1f} %",
                f"{one.tokens / one.duration_s:,.0f}",
                f"{100 * one.effective_time_ratio:.1f} %",
                str(one.num_moves),
                str(one.num_losses),
                f"{one.usd:,.0f}",
            )
            for name, one in rows
        ),
    ]


def spot_lines(config: Config, found: SpotRun) -> list[str]:
    """Return what is printed: title, answer, and a row for each rule."""
    cells = _cells(found)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = [
        "  ".join((row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:]))) for row in cells
    ]
    return [_title(config), *_answer(found), "", *rows]


def spot_figure(found: SpotRun) -> Figure:
    """Return when each site is up, and held, over the time of the run."""
    course, needs = found.case.world.course, found.case.world.offers.needs
    nothing = np.zeros_like(needs[:1])  # where an offer of -1 leads
    held = np.concatenate((needs, nothing))[list(found.held)]
    return panel_figure(
        name="sites",
        title="Sites that are up, and those that are held",
        seen=f"Held for {100 * found.history.held_s / course.duration_s:.0f} % of the time.",
        x=Axis(label="time [h]", low=0.0, high=course.duration_s / 3600),
        y=named_rows(course.sites),
        marks=(
            _stays("up", course.up, course.tick_s, "#BBBBBB", 0.82),
            _stays("held", held, course.tick_s, BLUE, 0.4),
        ),
        height=0.8 + 0.45 * len(course.sites),
        grid="x",
        width=9.0,
    )


def _stays(label: str, flags: np.ndarray, tick_s: float, colour: str, height: float) -> Boxes:
    """A box for each stay of a site, flags being (T, S)."""
    edges = np.diff(np.pad(flags.astype(int), ((1, 1), (0, 0))), axis=0)
    starts, rows = np.nonzero(edges.T == 1)[::-1]
    ends, _ = np.nonzero(edges.T == -1)[::-1]
    hours = tick_s / 3600
    return Boxes(
        label=label,
        starts=tuple((starts * hours).tolist()),
        ends=tuple((ends * hours).tolist()),
        rows=tuple(rows.astype(float).tolist()),
        colour=colour,
        height=height,
    )


def _title(config: Config) -> str:
    if config.plan is not None:
        return f"the plan of {config.plan}, on sites that come and go"
    return (
        f"{config.model} on {config.network}, whose sites come and go, decided by {config.planner}"
    )
