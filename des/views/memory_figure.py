"""Figure of the memory of every device over one iteration."""

from dataclasses import replace

from des.figures.figure import Figure
from des.figures.marks import Area, GuideLine, Mark, Numbers
from des.figures.palette import BLUE, FAINT, GREY, VERMILION
from des.figures.panels import Axis, Panel
from des.views.memory_timeline import DeviceMemory, MemoryTimeline

# Model state in tints of one colour, what comes and goes in another.
_STATE_COLOURS = {"optimiser": GREY, "gradients": "#B3B3B3", "weights": FAINT}
_MOST_DEVICES = 48
_MOST_CHANGES = 20_000
"""Changes of all devices that are drawn; of more, the highest of each few in a row."""


def memory_figure(timeline: MemoryTimeline, *, makespan_s: float) -> Figure:
    """Return one panel per device, each with the memory of one of its GPUs.

    Of more than 48 devices the fullest are shown, of more than 20,000 changes the highest of each
    few in a row, which the sentence says.
    """
    devices = list(timeline.devices)
    if len(devices) > _MOST_DEVICES:
        fullest = sorted(devices, key=lambda one: -one.peak_bytes / one.capacity_bytes)
        shown = {(one.domain, one.device) for one in fullest[:_MOST_DEVICES]}
        devices = [one for one in devices if (one.domain, one.device) in shown]
    one = timeline.fullest
    every = -(-sum(len(device.changes) for device in devices) // _MOST_CHANGES)
    thinned = f" Drawn: the highest of each {every} changes in a row." if every > 1 else ""
    return Figure(
        name="memory",
        title="Memory of a GPU over one iteration",
        seen=f"Memory of a GPU of each of {len(timeline.devices)} devices over time; the fullest, "
        f"of {one.domain}, holds at most {one.peak_bytes / 1e9:.3g} of "
        f"{one.capacity_bytes / 1e9:.3g} GB.{thinned}",
        panels=tuple(_panel(device, makespan_s, every) for device in devices),
        width=9.0,
        shares_x=True,
    )


def _area(label: str, x: Numbers, low: float, high: Numbers, colour: str) -> Area:
    return Area(label=label, x=x, low=(low,) * len(x), high=high, colour=colour)


def _panel(device: DeviceMemory, makespan_s: float, every: int) -> Panel:
    state = {
        "optimiser": device.optimiser_bytes,
        "gradients": device.gradient_bytes,
        "weights": device.weight_bytes,
    }
    marks: list[Mark] = []
    floor = 0.0
    for name, num_bytes in state.items():
        top = floor + num_bytes / 1e9
        marks.append(_area(name, (0.0, makespan_s), floor, (top, top), _STATE_COLOURS[name]))
        floor = top
    changes = [
        max(device.changes[at : at + every], key=lambda one: one.activation_bytes)
        for at in range(0, len(device.changes), every)
    ]
    held = [floor + change.activation_bytes / 1e9 for change in changes]
    times_s = (*(change.time_s for change in changes), makespan_s)
    activations = _area("activations", times_s, floor, (*held, held[-1]), BLUE)
    marks.append(replace(activations, is_step=True))
    marks.append(GuideLine(label="capacity", colour=VERMILION, y=device.capacity_bytes / 1e9))
    return Panel(
        x=Axis(label="time in s", low=0.0, high=makespan_s),
        y=Axis(label="GB", low=0.0),
        marks=tuple(marks),
        title=f"{device.domain}, device {device.device}: {device.peak_bytes / 1e9:.3g} of "
        f"{device.capacity_bytes / 1e9:.3g} GB",
        height=1.0,
    )
