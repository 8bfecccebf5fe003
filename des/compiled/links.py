"""Links of a program: their figures, the media they run over, and how they move."""

from typing import Any

import numpy as np

from des.compiled.kernels.link_records import GATE, LINK, LINK_GATE, MEDIUM
from des.compiled.kernels.program import PIECE, STEADY, TABLE, UNIFORM
from des.costs.message_times import hop_start_up, hop_window
from des.costs.start_up import StartUp
from des.dynamics import UniformLaw
from des.dynamics.link_course import Weather
from des.plan.corrections import Corrections
from des.world.topology import Topology

_START_UP = np.dtype(
    [
        (name, np.int64 if name in ("is_reused", "is_paced") else np.float64)
        for name in StartUp._fields
    ],
    align=True,
)
"""Records with the fields of `StartUp`."""


def link_records(topology: Topology, corrections: Corrections) -> tuple[np.ndarray, np.ndarray]:
    """Corrected figures of all links, and the media, numbered by their first link.

    Where fair rates depend on gates all links are one medium, which has no list of them.
    """
    media: dict[tuple[str, ...], tuple[list[int], int]] = {}
    links = np.zeros(len(topology.links), LINK)
    own, medium_of = [], []
    is_shared = topology.transport.half_duplex
    is_whole = topology.transport.sharing == "fair" and bool(topology.gates)
    for index, link in enumerate(topology.links):
        ends = (link.source, link.target)
        key = () if is_whole else tuple(sorted(ends)) if is_shared else ends
        users, medium = media.setdefault(key, ([], len(media)))
        users.append(index)
        own.append((link.bandwidth_bytes_per_s, link.latency_s, topology.round_trip_s(index)))
        medium_of.append(medium)
    links["medium"] = medium_of
    figures = np.array(own).reshape(-1, 3)
    links["bandwidth_bytes_per_s"] = figures[:, 0] * corrections.wan_bandwidth_factor
    links["latency_s"] = figures[:, 1] * corrections.wan_latency_factor
    links["round_trip_s"] = figures[:, 2] * corrections.wan_latency_factor
    caps = np.array(topology.message_caps_bytes_per_s)
    links["cap_bytes_per_s"] = caps * corrections.wan_bandwidth_factor
    for index in range(len(links)):
        window = hop_window(topology, index, corrections)
        for name, figure in () if window is None else window._asdict().items():
            links[name][index] = figure
    counts = np.zeros(len(links), np.int64)
    for gate in topology.gates:
        counts[list(gate.links)] += 1
    links["end_gate"] = np.cumsum(counts)
    links["first_gate"] = links["end_gate"] - counts
    found = [(*users, -1)[:2] for users, _ in media.values()]
    return links, np.array(found, MEDIUM)


def gate_records(topology: Topology, corrections: Corrections) -> tuple[np.ndarray, np.ndarray]:
    """Corrected rates that links share, and which of them each link has, link by link."""
    rates = [gate.rate_bytes_per_s * corrections.wan_bandwidth_factor for gate in topology.gates]
    users = sorted((link, number) for number, gate in enumerate(topology.gates)
                   for link in gate.links)  # fmt: skip
    return np.array(rates).view(GATE), np.array([gate for _, gate in users], np.int64).view(
        LINK_GATE
    )


def start_up_records(topology: Topology, corrections: Corrections) -> np.ndarray:
    """Figures of the law of the transport on each link; none where there is no law."""
    law = corrections.transport
    if law is None:
        return np.zeros(0, _START_UP)
    hops = range(len(topology.links))
    return np.array([hop_start_up(law, topology, hop, corrections) for hop in hops], _START_UP)


def weather_fields(topology: Topology) -> dict[str, Any]:
    """Fields of a header that say how the links move."""
    movement = topology.movement
    if movement is None:
        return {"weather": STEADY}
    law = movement.law
    if type(law) is not UniformLaw or law.correlation:  # all else is drawn in Python, see `Pieces`
        return {"weather": TABLE}
    return {
        "weather": UNIFORM,
        "seed": movement.seed,
        "start_s": movement.start_s,
        "interval_s": law.update_interval_s,
        "bandwidth_fluctuation": law.bandwidth_fluctuation,
        "latency_jitter": law.latency_jitter,
    }


class Pieces:
    """Courses of all links by any law, computed as far as they were requested."""

    def __init__(self, topology: Topology) -> None:
        assert topology.movement is not None
        self._weather = Weather(topology.movement, topology.links)
        self._pieces: list[list[tuple[float, float, float]]] = [[] for _ in topology.links]
        self._has_ended = [False] * len(topology.links)

    def reach(self, link: int, time_s: float) -> bool:
        """Whether the course of a link is known at a time; so it is after `extend`."""
        pieces = self._pieces[link]
        return bool(pieces) and pieces[-1][0] > time_s

    def extend(self, horizon_s: float) -> None:
        """Work out all courses to some time, or to where a trace ends before."""
        for link, pieces in enumerate(self._pieces):
            until_s = pieces[-1][0] if pieces else 0.0
            while until_s <= horizon_s and not self._has_ended[link]:
                try:
                    bandwidth, latency, until_s = self._weather.piece(link, until_s)
                except ValueError:  # a trace has ended; who needs more of it is told so there
                    self._has_ended[link] = True
                else:
                    pieces.append((until_s, bandwidth, latency))

    def write(self, links: np.ndarray) -> np.ndarray:
        """Return all pieces, link by link, and tell the links where theirs are."""
        counts = [len(pieces) for pieces in self._pieces]
        ends = np.cumsum(counts)
        links["end_piece"] = ends
        links["first_piece"] = ends - counts
        return np.array([piece for pieces in self._pieces for piece in pieces], PIECE)
