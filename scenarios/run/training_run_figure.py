"""Picture of a simulated training run: what iterations took, what others took, when it moved."""

import math
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from des.training.training_history import TrainingHistory
from scenarios.frame.plots import BLUE, FAINT, INK, REFERENCE_COLOURS

_COLOURS = (BLUE, *REFERENCE_COLOURS)
_LINE_STYLES: tuple[str, ...] = ("-", "--", ":")
_STILL_COLOUR = "#BBBBBB"


def training_run_figure(history: TrainingHistory, *, title: str) -> Figure:
    """Draw iteration time, what other jobs take and bytes moved over the time of the run.

    Grey: the training stands still, for a change of plan or for want of memory.
    """
    figure = Figure(
        figsize=(9.0, 9.0), dpi=120, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.05)
    )
    FigureCanvasAgg(figure)
    iterations, taken, memory, waiting, moves = figure.subplots(
        5, 1, sharex=True, gridspec_kw={"height_ratios": (3, 2, 2, 1, 2)}
    )
    _draw_iterations(iterations, history)
    _draw_loads(taken, history, "gpu_utilisation")
    _draw_loads(memory, history, "memory_occupancy")
    _draw_loads(waiting, history, "queue_length")
    _draw_moves(moves, history)
    iterations.set_title(title, loc="left", fontsize=10, color=INK, parse_math=False)
    taken.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    for axes, label in (
        (iterations, "iteration time [s]"),
        (taken, "GPUs taken\nby other jobs"),
        (memory, "memory taken\nby other jobs"),
        (waiting, "other jobs\nwaiting"),
        (moves, "model state\nmoved [GB]"),
    ):
        axes.set_ylabel(label, color=INK, fontsize=9)
        if axes.dataLim.y1 > 0:
            axes.set_ylim(bottom=0.0)
        else:  # nothing but zeros, or nothing at all
            axes.set_ylim(0.0, 1.0)
        axes.grid(axis="y", color=FAINT, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        for start_s, end_s in stalls(history):
            axes.axvspan(start_s / 3600, end_s / 3600, color=_STILL_COLOUR, linewidth=0, zorder=0)
    waiting.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    moves.set_xlim(0.0, history.total_s / 3600)
    moves.set_xlabel("time [h]", color=INK)
    figure.align_ylabels()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def stalls(history: TrainingHistory) -> Iterator[tuple[float, float]]:
    """Yield start and end of every time between two iterations, and of the last stall. [s]"""
    end_s = 0.0
    for row in history.iterations:
        if row.start_s > end_s * (1 + 1e-12):
            yield end_s, row.start_s
        end_s = row.start_s + row.duration_s
    if history.total_s > end_s * (1 + 1e-12):
        yield end_s, history.total_s


def _draw_iterations(axes: Axes, history: TrainingHistory) -> None:
    """Draw a line that is as long as each iteration, broken where the training stands still."""
    times_h: list[float] = []
    durations_s: list[float] = []
    gaps = {end_s for _, end_s in stalls(history)}
    for row in history.iterations:
        if row.start_s in gaps:
            times_h.append(row.start_s / 3600)
            durations_s.append(math.nan)
        times_h += [row.start_s / 3600, (row.start_s + row.duration_s) / 3600]
        durations_s += [row.duration_s] * 2
    axes.plot(times_h, durations_s, color=BLUE, linewidth=1.0)


def _draw_loads(axes: Axes, history: TrainingHistory, field: str) -> None:
    for domain, name in enumerate(history.domains):
        own = [sample for sample in history.loads if sample.domain == domain]
        times_h = [sample.time_s / 3600 for sample in own] + [history.total_s / 3600]
        values: Sequence[float] = [getattr(sample, field) for sample in own]
        axes.step(
            times_h,
            [*values, values[-1]],
            where="post",
            color=_COLOURS[domain % len(_COLOURS)],
            linestyle=_LINE_STYLES[domain // len(_COLOURS) % len(_LINE_STYLES)],
            linewidth=1.0,
            label=name,
        )


def _draw_moves(axes: Axes, history: TrainingHistory) -> None:
    """Draw a stem at each change of plan."""
    changes = [row for row in history.epochs if row.migration_s > 0 or row.moved_bytes > 0]
    times_h = [row.start_s / 3600 for row in changes]
    moved_gb = [row.moved_bytes / 1e9 for row in changes]
    axes.vlines(times_h, 0.0, moved_gb, color=BLUE, linewidth=1.8)
    axes.plot(times_h, moved_gb, color=BLUE, marker="o", markersize=4, linestyle="")
