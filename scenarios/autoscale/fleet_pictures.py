"""Pictures of runs of a fleet: sizes under each policy, and lives of instances."""

from collections.abc import Mapping

from des.figures.figure import Figure
from des.figures.marks import Boxes, Line
from des.figures.palette import AMBER, BLUE, COLOURS, GREEN, GREY, PURPLE
from des.figures.panels import Axis, Panel
from des.serving.fleet_world import History
from des.serving.instance_life import ACTIVE, DRAINING, SLEEPING, STARTING, STATES, WARM


def sizes_figure(histories: Mapping[str, History]) -> Figure:
    """Draw the load, and how many instances each policy has over time, draining ones included."""
    first = next(iter(histories.values()))
    times_s = tuple(view.now_s for view, _ in first.decisions)
    rates = tuple(view.arrivals / view.interval_s for view, _ in first.decisions)
    load = Line(label="arrivals", x=times_s, y=rates, colour=GREY, is_step=True)
    sizes = tuple(
        Line(
            label=name,
            x=tuple(view.now_s for view, _ in history.decisions),
            y=tuple(
                float(sum(pool.ordered + pool.draining for pool in view.pools.values()))
                for view, _ in history.decisions
            ),
            colour=COLOURS[number % len(COLOURS)],
            dash="solid" if number < len(COLOURS) else "dash",
            is_step=True,
        )
        for number, (name, history) in enumerate(histories.items())
    )
    return Figure(
        name="sizes",
        title="Load and instances",
        seen=f"Requests per second, and instances over time under {', '.join(histories)}.",
        panels=(
            Panel(x=Axis(), y=Axis(label="requests/s", low=0.0), marks=(load,), height=1.4),
            Panel(
                x=Axis(label="time [s]"),
                y=Axis(label="instances", low=0.0, is_counted=True),
                marks=sizes,
            ),
        ),
        width=8.0,
        shares_x=True,
    )


def instances_figure(name: str, history: History) -> Figure:
    """Draw the life of each instance: starting, active, draining, spare."""
    marks = []
    for state in STATES:
        boxes = [
            (float(one.number), start_s, end_s)
            for one in history.instances
            for name, start_s, end_s in one.spans
            if name == state
        ]
        if not boxes and state in (WARM, SLEEPING):
            continue
        rows, starts, ends = zip(*boxes, strict=True) if boxes else ((), (), ())
        marks.append(
            Boxes(label=state, starts=starts, ends=ends, rows=rows, colour=_COLOURS[state])
        )
    num = len(history.instances)
    return Figure(
        name=f"instances_{name}",
        title=f"Instances under {name}",
        seen=f"Lives of {num} instances from the order to the stop, by state.",
        panels=(
            Panel(
                x=Axis(label="time [s]"),
                y=Axis(label="instance", is_counted=True),
                marks=tuple(marks),
                height=1.2 + min(0.18 * num, 12.0),
                grid="x",
            ),
        ),
        width=8.0,
    )


_COLOURS = {STARTING: GREY, ACTIVE: BLUE, DRAINING: AMBER, WARM: GREEN, SLEEPING: PURPLE}
