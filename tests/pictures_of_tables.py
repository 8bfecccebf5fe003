"""Pictures of reproductions and of trainings' files from fixed data, by the function of each."""

import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from strategies import plan, unit_workload, world

from calibration.fit.transport_grid import FittedTransport, TransportGrid
from calibration.fit.transport_report import delay_figure
from calibration.measurements.reading import Reading
from des import simulate
from des.plan.transport_law import TransportLaw
from des.world.packet_transport import PacketTransport
from docs.figures import draw
from scenarios.measuring.course_picture import course_figure
from scenarios.measuring.courses import LEAST_VALUES, fit_course
from scenarios.rehearse.planner_table import planner_table
from scenarios.rehearse.time_differences import Comparison
from scenarios.reproduce import (
    blox,
    constants,
    crosspipe,
    diloco,
    measured,
    rivals,
    sailor,
    sites,
    spot,
    zero_bubble,
)
from scenarios.reproduce.cases import read_cases
from scenarios.reproduce.crosspipe_runs import COLUMNS, DelayRow
from scenarios.reproduce.diloco import DiLoCoRow
from scenarios.reproduce.measured_tables import MeasuredCell, MeasuredTable
from scenarios.train.east_west.curves import stage_curves
from scenarios.train.east_west.stages import MOVES, PLACEMENT
from scenarios.watch.replay import ReplayedDecision, WatchedDay, day_figure


def pipelines():
    """All columns of two rows, one of which has no published figures of half of them."""
    row = DelayRow(
        latency_over_forward=0.25,
        transfer_over_forward=1.0,
        num_domains=2,
        seconds_per_microbatch={"1f1b": 0.2},
    )
    frame = pd.DataFrame(
        [
            {
                "row": at,
                "schedule": name,
                "published_s": None if at and place % 2 else 0.1 * (1 + place % 4),
                "plain_s": 0.09 * (1 + place % 5),
                "stalled_s": 0.12 * (1 + place % 4),
                "lower_bound_s": 0.08,
            }
            for at in range(2)
            for place, name in enumerate(COLUMNS)
        ]
    )
    return [crosspipe.draw({0: row, 1: row}, frame)]


def errors_of_runs():
    """Two clusters; one run is 700 % off."""
    frame = pd.DataFrame(
        [
            {
                "cluster": cluster,
                "short_name": f"opt_350m pp{place} dp2 tp{place}",
                "measured_s": 10.0,
                "error_percent": -8.0 + 2 * place,
                "plain_1f1b_error_percent": 700.0 if place == 3 else -20.0 + place,
                "Sailor_error_percent": 5.0 - place,
            }
            for cluster in ("A100", "V100 and A100")
            for place in range(9)
        ]
    )
    return [sailor.draw(frame)]


def planners_and_originals():
    """Differences far apart."""
    rows = [
        {"planner": name, "case": f"world {case}", "difference_percent": -40.0 + 13.0 * case}
        for name in ("sailor", "sailor_overlapped", "dtfm", "crosspipe")
        for case in range(5)
    ]
    return [rivals.draw(pd.DataFrame(rows))]


def runs_over_sites():
    """Ranges below, around and above what was measured."""
    rows = [
        {"name": name, "measured": 1.0, "low": low, "predicted": 1.5 * low, "high": 4.0 * low}
        for name, low in (("one run over two sites", 0.1), ("another one", 0.5), ("third", 2.0))
    ]
    return [sites.draw(pd.DataFrame(rows))]


def rules_on_sites():
    """Two rules in two suites, with long names and wide intervals."""
    frame = pd.DataFrame(
        {
            "suite": ["known", "known", "short_stays", "short_stays"],
            "rule": ["hysteresis", "sampled"] * 2,
            "share_percent": [60.0, 92.7, 5.0, 99.0],
            "half_width": [8.0, 1.4, 4.0, 0.5],
        }
    )
    return [spot.draw(frame)]


def queues():
    """Six cases, whose names are those of files."""
    names = [path.stem for path in sorted(Path(blox.__file__).with_name("data").glob("blox/*"))]
    frame = pd.DataFrame({"case": names, "our_jct_s": 10.0 ** np.arange(1, 1 + len(names))})
    return [blox.draw(frame.assign(blox_jct_s=frame["our_jct_s"], sound_change=-0.3))]


def utilisations():
    """The shipped rows."""
    return [diloco.draw(read_cases(diloco.SHIPPED, DiLoCoRow, diloco.SHIPPED).rows)]


def figures_of_runs():
    """Three tables, of two quantities; one has a single cell, one is 70 % off."""
    tables = [
        MeasuredTable(
            name=name,
            cells=tuple(
                MeasuredCell(run=f"run {at}", quantity=quantity, measured=at, predicted=factor * at)
                for at in values
                for quantity in ("iteration_s", "memory_gb")
            ),
            targets=(),
        )
        for name, values, factor in (
            ("vtrain_multi", (1.0, 10.0, 40.0), 1.05),
            ("mtnlg", (36.2,), 0.9),
            ("intellect1", (0.4, 0.5), 1.7),
        )
    ]
    return [measured.draw(tables)]


def bubble_rates():
    """Five rows of five schedules."""
    frame = pd.DataFrame(
        [
            {
                "row": at,
                "model": "1.5B",
                "num_stages": 8,
                "num_microbatches": 24,
                "schedule": name,
                "published_bubble_rate": 0.05 * place,
                "our_bubble_rate": 0.055 * place,
            }
            for at in range(5)
            for place, name in enumerate(zero_bubble.COLUMNS)
        ]
    )
    return [zero_bubble.draw(frame)]


def delays():
    """Eight settings of a transport on two queues."""
    packets = PacketTransport(congestion="cubic", connections="fresh", queue_bytes=1e6)
    grid = TransportGrid(
        packets=packets, queues_products=(0.5, 2.0), loss_fractions=(0.0, 1e-4), nums_flows=(1, 4)
    )
    law = TransportLaw(
        connections="fresh", first_window_bytes=65000.0, segment_bytes=65000.0,
        start_up_round_trips=1.0, efficiency=0.8,
    )  # fmt: skip
    fitted = [FittedTransport(packets=one, law=law, error=0.01) for one in grid.cells()]
    return [delay_figure(grid, fitted, rate_bytes_per_s=1e9, round_trip_s=0.04)]


def stages():
    """A long training, and a quick one whose costs are those of the best found but for rounding."""
    found = []
    for num, excess in ((50, 0.3), (2, 1e-16)):
        steps = np.arange(1, num + 1)
        fall = excess * np.exp(-steps / 10.0)
        with tempfile.TemporaryDirectory() as folder:
            for kind, cost in ((PLACEMENT, 0.5 + fall), (MOVES, 1.0 + fall)):
                log = pd.DataFrame({"step": steps, "update": steps})
                log = log.assign(**dict.fromkeys(kind.columns, 0.5), wall_s=1.0)
                name = "mean_cost" if kind is PLACEMENT else "cost"
                log.assign(**{name: cost}).to_csv(Path(folder) / kind.log, index=False)
            found.append(stage_curves(Path(folder)))
    return found


def sets_of_constants():
    """Number of fitted constants of every set of rows."""
    return [constants.draw(tuple(constants.list_fitted_constants()))]


def courses():
    """Values of an hour about their law, and the fewest that a law is fitted to, of one outage."""
    rng = np.random.default_rng(0)
    found = []
    for count in (360, LEAST_VALUES):
        rates = 1e9 * np.exp(0.2 * rng.standard_normal(count))
        rates[3] = 0.0 if count == LEAST_VALUES else rates[3]
        series = tuple((10.0 * at, rate) for at, rate in enumerate(rates.tolist()))
        shared = {"source_site": "A", "target_site": "B", "series": series}
        reading = Reading(file="x", format="made", what="bandwidth", value=1e9, **shared)
        found.append(course_figure(fit_course([reading], world("AB", {"AB": (1e9, 0.01)}))))
    return found


def days():
    """A day without a change, and one on which the plan changes and none can run."""
    return [
        day_figure(
            WatchedDay(
                moments=tuple(
                    ReplayedDecision(
                        time_s=3600.0 * hour,
                        action=action,
                        step_s=math.nan if action == "wait" else 20.0 + hour,
                        quickest_s=4.0,
                        still_s=0.0 if action in ("stay", "wait") else 900.0,
                    )
                    for hour, action in enumerate(actions)
                )
            )
        )
        for actions in (["stay"] * 3, ["move", "stay", "wait", "rebind"])
    ]


def rehearsals():
    """A step of two stages in which all was twice as slow as predicted."""
    predicted = simulate(
        world("AB", {"AB": (1e9, 0.1), "BA": (1e9, 0.1)}),
        unit_workload([(1.0, 2.0)] * 2, num_microbatches=3, message_bytes=1e8),
        plan(0, 1),
    )
    spans = tuple(
        one._replace(start_s=2 * one.start_s, end_s=2 * one.end_s) for one in predicted.spans
    )
    slow = replace(predicted, makespan_s=2 * predicted.makespan_s, spans=spans, transfers=())
    return [Comparison(predicted=predicted, measured=slow, rank_of_stage={0: 0, 1: 1}).figure()]


def rehearsed_planners():
    """Two planners on two worlds, one of them with plans of its own that took longer."""
    frame = pd.DataFrame(
        {
            "world": ["one", "one", "two", "two"],
            "planner": ["dtfm", "decide"] * 2,
            "launch": ["aa", "bb", "cc", "cc"],
            "schedule": "1f1b",
            "num_ranks": 2,
            "predicted_s": [2.0, 1.0, 3.0, 3.0],
            "measured_s": [2.1, 1.3, 3.1, 3.1],
            "error": "",
        }
    )
    return [planner_table(frame).figure]


PICTURES = {
    "scenarios.rehearse.planner_table:_figure": rehearsed_planners,
    "scenarios.rehearse.time_differences:figure": rehearsals,
    "scenarios.watch.replay:day_figure": days,
    "scenarios.measuring.course_picture:course_figure": courses,
    "scenarios.reproduce.constants:draw": sets_of_constants,
    "scenarios.reproduce.crosspipe:draw": pipelines,
    "scenarios.reproduce.sailor:draw": errors_of_runs,
    "scenarios.reproduce.rivals:draw": planners_and_originals,
    "scenarios.reproduce.blox:draw": queues,
    "scenarios.reproduce.sites:draw": runs_over_sites,
    "scenarios.reproduce.spot:draw": rules_on_sites,
    "scenarios.reproduce.diloco:draw": utilisations,
    "scenarios.reproduce.measured:draw": figures_of_runs,
    "scenarios.reproduce.zero_bubble:draw": bubble_rates,
    "calibration.fit.transport_report:delay_figure": delays,
    "scenarios.train.east_west.curves:stage_curves": stages,
    "docs.figures.draw:planners": lambda: [draw.planners()],
    "docs.figures.draw:worth": lambda: [draw.worth()],
    "docs.figures.draw:published": lambda: [draw.published()],
    "docs.figures.draw:scheduling": lambda: [draw.scheduling()],
}
