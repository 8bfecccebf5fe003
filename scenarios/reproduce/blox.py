"""Job queues as Blox simulates them, equal to its own runs per job and per round.

The cases are runs of the simulator of Blox (S. Agarwal et al., EuroSys'24) under FIFO, LAS, SRTF,
its Optimus, and admission by load. Ours follow its rules with ``--compat blox``, its two accidents
included; the column ``sound_change`` says by how much the mean time changes without these. The
bound: no difference in any figure.
"""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from des.cluster.history import History
from des.cluster.running import run
from des.cluster.world import BloxRules
from des.figures.figure import Figure, panel_figure
from des.figures.marks import Points, Symbol
from des.figures.palette import COLOURS, INK, SKY
from des.figures.panels import Axis, named_rows
from scenarios.reproduce.blox_cases import BloxCase, read_blox_cases
from scenarios.reproduce.report import Bound, Reproduction

SHOWN = ("case", "jobs", "rounds", "blox_jct_s", "our_jct_s", "unequal_jobs", "unequal_rounds")
_NOTES = (
    "Computed by Blox, github.com/msr-fiddle/blox, commit c8851b2; the source of each case says "
    "what was altered there.",
    "unequal_jobs: jobs any of whose times, launches, suspensions or first GPUs differ; "
    "unequal_rounds: rounds any of whose counts differ, and rounds too many or too few.",
    "sound_change: mean time without the two accidents of Blox (a placement that fails unless "
    "whole free nodes make the exact number, and suspensions that stay although they did not "
    "help) over that with them, less 1.",
)


def reproduce_cases(folder: Path) -> Reproduction:
    """Reproduce the cases of a folder."""
    return reproduce(read_blox_cases(folder))


def reproduce(cases: Mapping[str, BloxCase]) -> Reproduction:
    """Run every case and hold it against what Blox computed."""
    frame = compare(cases)
    bounds = [
        Bound.at_most(name, float(frame[column].sum()), 0.0, shown=".3g")
        for name, column in (
            (f"unequal jobs of {frame['jobs'].sum()}", "unequal_jobs"),
            (f"unequal rounds of {frame['rounds'].sum()}", "unequal_rounds"),
            (f"unequal totals of {len(frame)} cases", "unequal_totals"),
        )
    ]
    return Reproduction(
        title="Job queues as Blox simulates them",
        frame=frame,
        bounds=tuple(bounds),
        figure=draw(frame),
        notes=_NOTES,
        shown=SHOWN,
    )


def compare(cases: Mapping[str, BloxCase]) -> pd.DataFrame:
    """One row per case: figures of Blox, ours, and how many of them differ."""
    rows = []
    for name, case in cases.items():
        history = run(case.world(), case.scheduler())
        sound_rules = BloxRules(
            rate=case.policy.service_rate_multiplier, takes_exactly=False, keeps_vain=False
        )
        sound = run(case.world(sound_rules), case.scheduler())
        rows.append(
            {
                "case": name,
                "policy": case.policy.scheduler,
                "jobs": len(case.expected.jobs),
                "rounds": case.expected.rounds_executed,
                "blox_jct_s": case.expected.avg_jct_s,
                "our_jct_s": history.mean_jct_s,
                "unequal_jobs": unequal_jobs(case, history),
                "unequal_rounds": unequal_rounds(case, history),
                "unequal_totals": unequal_totals(case, history),
                "sound_change": sound.mean_jct_s / history.mean_jct_s - 1.0,
            }
        )
    return pd.DataFrame(rows)


def unequal_jobs(case: BloxCase, history: History) -> int:
    """Jobs with a figure that differs, or that did not end here."""
    ours = {}
    for job, gpus in zip(history.jobs, history.first_gpus, strict=True):
        ours[job.job_id] = {
            "id": job.job_id,
            "admitted_s": job.admitted_s,
            "first_launch_s": job.first_launch_s,
            "finish_s": job.finish_s,
            "jct_s": job.jct_s,
            "responsiveness_s": job.first_launch_s + case.round_s - job.arrival_s,
            "launches": job.launches,
            "suspensions": job.suspensions,
            "first_gpus": gpus,
        }
    differing = 0
    for expected in case.expected.jobs:
        figures = expected.model_dump(exclude_none=True)
        own = ours.get(expected.id, {})
        differing += any(own.get(field) != figure for field, figure in figures.items())
    return differing


def unequal_rounds(case: BloxCase, history: History) -> int:
    """Rounds with a count that differs, and the difference in the number of rounds."""
    series = case.expected.series
    differing = sum(
        tuple(expected.model_dump().values()) != tuple(ours)
        for expected, ours in zip(series, history.rounds, strict=False)
    )
    return differing + abs(case.expected.rounds_executed - len(history.rounds))


def unequal_totals(case: BloxCase, history: History) -> int:
    """Means and sums that differ: mean times by more than 1e-9 of them, the others at all."""
    expected = case.expected
    responsiveness_s = [job.first_launch_s + case.round_s - job.arrival_s for job in history.jobs]
    means = (
        (expected.avg_jct_s, history.mean_jct_s),
        (expected.avg_responsiveness_s, sum(responsiveness_s) / len(responsiveness_s)),
    )
    differing = sum(abs(ours - theirs) > 1e-9 * abs(theirs) for theirs, ours in means)
    tracked = [job.suspensions for job in history.jobs]
    totals = {history.num_suspensions, sum(tracked)}
    return differing + (expected.total_suspensions not in totals)


def draw(frame: pd.DataFrame) -> Figure:
    """Return the mean time of each case: theirs, ours, and ours without the accidents."""
    rows = tuple(map(float, range(len(frame))))
    ours_s = frame["our_jct_s"].astype(float)
    sound_s = ours_s * (1.0 + frame["sound_change"].astype(float))
    series: tuple[tuple[str, pd.Series, str, Symbol, bool], ...] = (
        ("ours, as Blox", ours_s, SKY, "circle", False),
        ("Blox", frame["blox_jct_s"].astype(float), INK, "square", True),
        ("ours, without the accidents", sound_s, COLOURS[1], "x", False),
    )
    return panel_figure(
        name="picture",
        title="Mean times from arrival to end, ours and those of Blox",
        seen=f"Mean times of {len(frame)} cases: without the two accidents they change by "
        f"{frame['sound_change'].min():+.0%} to {frame['sound_change'].max():+.0%}.",
        x=Axis(label="mean time from arrival to end [s]", scale="log"),
        y=named_rows(map(str, frame["case"])),
        marks=tuple(
            Points(
                label=label,
                x=tuple(times_s.tolist()),
                y=rows,
                colour=colour,
                symbol=symbol,
                is_open=is_open,
            )
            for label, times_s, colour, symbol, is_open in series
        ),
        height=0.8 + 0.4 * len(frame),
        grid="x",
        width=9.0,
    )
