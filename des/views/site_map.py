"""Map of the sites: domains, the links between them, and what a plan puts where."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from des.engine.result import IterationResult
from des.figures.figure import Figure
from des.figures.marks import Arrow, Mark, Points
from des.figures.palette import BLUE, GREY, VERMILION
from des.figures.panels import Axis, Panel
from des.views.gantt import short_name
from des.views.map_texts import Places, map_texts
from des.world.topology import Link, Topology

_MOST_IDLE_LINKS = 60
_MOST_LATENCY_S = 10.0
"""Distance of domains that no link joins."""

_STILL_COLOUR = "#A9A9A9"

_WIDTH_INCHES, _LEAST_INCHES, _MOST_INCHES = 6.3, 1.6, 3.2


def site_map(
    topology: Topology, result: IterationResult | None = None, *, places: Places | None = None
) -> Figure:
    """Return the map: links in use in colour, as wide as they are busy.

    Parameters
    ----------
    result
        Iteration whose plan is shown; None shows the world alone.
    places
        Places on the Earth; without them, sites are as far apart as their links are slow: the two
        main axes of classical scaling [1]_ of latencies.

    References
    ----------
    .. [1] W. S. Torgerson, "Multidimensional scaling: I. Theory and method", Psychometrika 17,
       1952.
    """
    at = places or scale_places(topology)
    busy_s = (
        {}
        if result is None
        else {(link.source, link.target): link.busy_s for link in result.links if link.num_messages}
    )
    layers = {} if result is None else _layers_of(result)
    makespan_s = 1.0 if result is None else result.makespan_s
    marks: list[Mark] = [
        _arrow(link, at, busy_s.get((link.source, link.target)), makespan_s)
        for link in _show_links(topology, set(busy_s))
    ]
    for label, colour, is_used in (("in use", BLUE, True), ("not in use", GREY, False)):
        own = [one for one in topology.domains if (one.name in layers) is is_used]
        if own:
            hovers = tuple(
                f"{one.name}: {one.num_gpus} GPUs, {one.peak_flops_per_s / 1e15:.3g} PFLOP/s"
                for one in own
            )
            x, y = zip(*(at[one.name] for one in own), strict=True)
            marks.append(Points(label=label, x=x, y=y, colour=colour, size=13.0, hovers=hovers))
    names = {
        one.name: short_name(one.name)
        + (f", {layers[one.name]} layers" if one.name in layers else "")
        for one in topology.domains
    }
    panel, inches_per_unit = _panel(at, is_earth=places is not None)
    texts = map_texts(at, names, topology.links, inches_per_unit)
    return Figure(
        name="map",
        title="Sites and links",
        note=_bandwidth_note(topology.links),
        seen=_sentence(topology, layers, result),
        panels=(replace(panel, marks=(*marks, *texts)),),
    )


def _panel(at: Places, *, is_earth: bool) -> tuple[Panel, float]:
    """Panel without marks, and its scale on paper, as wide or as high as there is room."""
    axes, spans = [], []
    for own, label in zip(
        zip(*at.values(), strict=True), ("longitude [°]", "latitude [°]"), strict=True
    ):
        room = 0.25 * (max(own) - min(own)) or 1.0
        spans.append(max(own) - min(own) + 2.0 * room)
        axes.append(
            Axis(
                label=label if is_earth else "",
                low=min(own) - room,
                high=max(own) + room,
                is_shown=is_earth,
            )
        )
    grid: Literal["both", "none"] = "both" if is_earth else "none"
    height = min(_MOST_INCHES, max(_LEAST_INCHES, _WIDTH_INCHES * spans[1] / spans[0]))
    panel = Panel(x=axes[0], y=axes[1], marks=(), height=height, has_equal_scales=True, grid=grid)
    return panel, min(_WIDTH_INCHES / spans[0], height / spans[1])


def _bandwidth_note(links: Sequence[Link]) -> str:
    gbits = sorted(link.bandwidth_bytes_per_s * 8e-9 for link in links)
    if not gbits:
        return ""
    ends = dict.fromkeys(f"{one:.3g}" for one in (gbits[0], gbits[-1]))
    return f"links of {' to '.join(ends)} Gbit/s"


def scale_places(topology: Topology) -> dict[str, tuple[float, float]]:
    """Return places whose distances are latencies, as far as a plane allows. [ms]"""
    num = topology.num_domains
    distance = np.full((num, num), _MOST_LATENCY_S)
    for (source, target), index in topology.link_index.items():
        distance[source, target] = topology.links[index].latency_s
    known = distance[distance < _MOST_LATENCY_S]
    distance = np.minimum(distance, 2.0 * float(known.max()) if known.size else 1.0)
    distance = 1e3 * np.minimum(distance, distance.T)
    np.fill_diagonal(distance, 0.0)
    centre = np.eye(num) - 1.0 / num
    values, vectors = np.linalg.eigh(-0.5 * centre @ (distance**2) @ centre)
    found = np.zeros((num, 2))
    for axis in range(min(2, num)):
        vector = vectors[:, -1 - axis]
        vector = vector * (1.0 if vector[np.argmax(np.abs(vector))] > 0 else -1.0)
        found[:, axis] = vector * np.sqrt(max(0.0, values[-1 - axis]))
    found = np.round(_apart(found), 6)
    names = [domain.name for domain in topology.domains]
    return {name: (x, y) for name, (x, y) in zip(names, found.tolist(), strict=True)}


def _apart(places: np.ndarray) -> np.ndarray:
    """Put all sites on a circle where some would lie on each other, or all on a line."""
    num = len(places)
    gaps = np.linalg.norm(places[:, None] - places[None], axis=-1) + np.eye(num) * 1e9
    spread = float(np.ptp(places, axis=0).max()) if num > 1 else 0.0
    is_flat = num > 2 and float(np.ptp(places, axis=0).min()) < 0.15 * spread
    if num > 1 and (float(gaps.min()) < 0.08 * spread or spread == 0.0 or is_flat):
        angles = np.pi - 2.0 * np.pi * np.arange(num) / num
        places = np.stack([np.cos(angles), np.sin(angles)], axis=1) * max(spread, 1.0) / 2
    return places


def _layers_of(result: IterationResult) -> dict[str, int]:
    found: dict[str, int] = {}
    for stage in result.stages:
        found[stage.domain] = found.get(stage.domain, 0) + stage.num_layers
    return found


def _show_links(topology: Topology, used: set[tuple[str, str]]) -> list[Link]:
    """All links in use, and the widest of the others; these below."""
    idle = [link for link in topology.links if (link.source, link.target) not in used]
    idle.sort(key=lambda link: -link.bandwidth_bytes_per_s)
    return idle[:_MOST_IDLE_LINKS] + [
        link for link in topology.links if (link.source, link.target) in used
    ]


def _arrow(link: Link, at: Places, busy_s: float | None, makespan_s: float) -> Arrow:
    (x, y), (to_x, to_y) = at[link.source], at[link.target]
    figures = (
        f"{link.source} to {link.target}: {link.bandwidth_bytes_per_s * 8e-9:.3g} Gbit/s, "
        f"{link.latency_s * 1e3:.3g} ms"
    )
    still = Arrow(x=x, y=y, to_x=to_x, to_y=to_y, colour=_STILL_COLOUR, width=0.8, hover=figures)
    if busy_s is None:
        return still
    share = min(1.0, busy_s / makespan_s)
    hover = f"{figures}\nbusy {100 * share:.0f} % of the iteration"
    return replace(still, colour=VERMILION, width=1.4 + 2.6 * share, hover=hover)


def _sentence(topology: Topology, layers: dict[str, int], result: IterationResult | None) -> str:
    text = f"{topology.num_domains} sites and {len(topology.links)} directed links"
    if result is None:
        return f"{text}."
    held = ", ".join(f"{name} holds {num} layers" for name, num in layers.items())
    used = [one for one in result.links if one.num_messages]
    busiest = max(used, key=lambda one: one.busy_s, default=None)
    sent = (
        "no link is used"
        if busiest is None
        else f"{len(used)} links are used, {busiest.source} to {busiest.target} the busiest"
    )
    return f"{text}; {held}; {sent}."
