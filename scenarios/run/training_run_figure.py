"""Figure of a simulated training run: what iterations took, what others took, when it moved."""

import math
from collections.abc import Iterator

from des.figures.figure import Figure
from des.figures.marks import Line, Mark, Points, Stripe
from des.figures.palette import BLUE, COLOURS, colour
from des.figures.panels import Axis, Panel
from des.training.training_history import TrainingHistory


def training_run_figure(history: TrainingHistory, *, title: str) -> Figure:
    """Return iteration time, what other jobs take and bytes moved over the time of the run.

    Grey: the training stands still, for a change of plan or for want of memory.
    """
    stripes = tuple(
        Stripe(start=start_s / 3600, end=end_s / 3600) for start_s, end_s in stalls(history)
    )
    curves: dict[str, tuple[Mark, ...]] = {
        "iteration time [s]": (_iterations(history),),
        "GPUs taken by other jobs": tuple(_loads(history, "gpu_utilisation")),
        "memory taken by other jobs": tuple(_loads(history, "memory_occupancy")),
        "other jobs waiting": tuple(_loads(history, "queue_length")),
        "model state moved [GB]": tuple(_moves(history)),
    }
    x = Axis(label="time [h]", low=0.0, high=history.total_s / 3600)
    num_changes = sum(row.migration_s > 0 for row in history.epochs)
    durations = [row.duration_s for row in history.iterations]
    return Figure(
        name="training_run",
        title=title,
        seen=f"{len(durations)} iterations of {min(durations):.4g} to {max(durations):.4g} s over "
        f"{history.total_s / 3600:.3g} h, with {num_changes} changes of plan; grey where the "
        "training stands still.",
        panels=tuple(
            Panel(
                x=x,
                y=Axis(low=0.0, high=None if _is_drawn(marks) else 1.0),
                marks=(*stripes, *marks),
                title=label,
                height=1.9 if label.startswith("iteration") else 1.2,
            )
            for label, marks in curves.items()
        ),
        width=9.0,
        shares_x=True,
    )


def _is_drawn(marks: tuple[Mark, ...]) -> bool:
    """Whether there is more than zeros."""
    return any(value > 0 for mark in marks if isinstance(mark, Line | Points) for value in mark.y)


def stalls(history: TrainingHistory) -> Iterator[tuple[float, float]]:
    """Yield start and end of every time between two iterations, and of the last stall. [s]"""
    end_s = 0.0
    for row in history.iterations:
        if row.start_s > end_s * (1 + 1e-12):
            yield end_s, row.start_s
        end_s = row.start_s + row.duration_s
    if history.total_s > end_s * (1 + 1e-12):
        yield end_s, history.total_s


def _iterations(history: TrainingHistory) -> Line:
    """A line that is as long as each iteration, broken where the training stands still."""
    times_h: list[float] = []
    durations_s: list[float] = []
    gaps = {end_s for _, end_s in stalls(history)}
    for row in history.iterations:
        if row.start_s in gaps:
            times_h.append(row.start_s / 3600)
            durations_s.append(math.nan)
        times_h += [row.start_s / 3600, (row.start_s + row.duration_s) / 3600]
        durations_s += [row.duration_s] * 2
    return Line(label="", x=tuple(times_h), y=tuple(durations_s), colour=BLUE, width=1.0)


def _loads(history: TrainingHistory, field: str) -> Iterator[Line]:
    for domain, name in enumerate(history.domains):
        own = [sample for sample in history.loads if sample.domain == domain]
        values = [float(getattr(sample, field)) for sample in own]
        yield Line(
            label=name,
            x=(*(sample.time_s / 3600 for sample in own), history.total_s / 3600),
            y=(*values, values[-1]),
            colour=colour(domain),
            dash="solid" if domain < len(COLOURS) else "dash",
            width=1.0,
            is_step=True,
        )


def _moves(history: TrainingHistory) -> Iterator[Mark]:
    """A stem at each change of plan."""
    changes = [row for row in history.epochs if row.migration_s > 0 or row.moved_bytes > 0]
    times_h = tuple(row.start_s / 3600 for row in changes)
    moved_gb = tuple(row.moved_bytes / 1e9 for row in changes)
    if changes:
        yield Line(
            label="",
            x=tuple(at for time_h in times_h for at in (time_h, time_h, math.nan)),
            y=tuple(at for moved in moved_gb for at in (0.0, moved, math.nan)),
            colour=BLUE,
        )
        yield Points(label="", x=times_h, y=moved_gb, colour=BLUE, size=4.0)
