"""Figure of the memory of every device over one iteration."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from des.views.memory_timeline import DeviceMemory, MemoryTimeline
from scenarios.frame.plots import FAINT, INK, png_bytes

# Okabe and Ito's palette: model state in tints of one colour, what comes and goes in another.
_STATE_COLOURS = {"optimiser": "#8C8C8C", "gradients": "#B3B3B3", "weights": FAINT}
_ACTIVATION_COLOUR = "#0072B2"
_CAPACITY_COLOUR = "#D55E00"
_PANEL_INCHES, _AROUND_INCHES, _WIDTH_INCHES = 1.0, 1.1, 9.0
_TALLEST_FIGURE_INCHES = 60.0


def memory_png(timeline: MemoryTimeline, *, makespan_s: float, title: str = "") -> bytes:
    """Draw one panel per device, each with the memory of one of its GPUs, as a PNG file."""
    num_devices = len(timeline.devices)
    height = min(_TALLEST_FIGURE_INCHES, _AROUND_INCHES + _PANEL_INCHES * num_devices)
    figure = Figure(
        figsize=(_WIDTH_INCHES, height), dpi=100, layout=ConstrainedLayoutEngine(h_pad=0.05)
    )
    FigureCanvasAgg(figure)
    panels = figure.subplots(num_devices, 1, sharex=True, squeeze=False)[:, 0]
    for axes, device in zip(panels, timeline.devices, strict=True):
        _draw_device(axes, device, makespan_s)
    panels[-1].set_xlim(0.0, makespan_s)
    panels[-1].set_xlabel("time in s")
    figure.suptitle(title or "Memory of a GPU", parse_math=False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return png_bytes(figure)


def _draw_device(axes: Axes, device: DeviceMemory, makespan_s: float) -> None:
    times_s = np.array([*(change.time_s for change in device.changes), makespan_s])
    state = {
        "optimiser": device.optimiser_bytes,
        "gradients": device.gradient_bytes,
        "weights": device.weight_bytes,
    }
    floor = 0.0
    for name, num_bytes in state.items():
        top = floor + num_bytes / 1e9
        axes.fill_between(
            [0.0, makespan_s], floor, top, color=_STATE_COLOURS[name], linewidth=0, label=name
        )
        floor = top
    held = np.array([change.activation_bytes for change in device.changes]) / 1e9
    tops = floor + np.append(held, held[-1])
    axes.fill_between(
        times_s,
        floor,
        tops,
        step="post",
        color=_ACTIVATION_COLOUR,
        linewidth=0,
        label="activations",
    )
    axes.axhline(
        device.capacity_bytes / 1e9, color=_CAPACITY_COLOUR, linestyle="--", label="capacity"
    )
    axes.set_ylim(0.0, 1.08 * max(device.capacity_bytes, device.peak_bytes) / 1e9)
    axes.set_ylabel("GB", color=INK)
    axes.set_title(
        f"{device.domain}, device {device.device}: at most {device.peak_bytes / 1e9:.3g} of "
        f"{device.capacity_bytes / 1e9:.3g} GB on each of {device.num_gpus} GPUs",
        fontsize=9,
        loc="left",
        parse_math=False,
    )
    axes.spines[["top", "right"]].set_visible(False)
