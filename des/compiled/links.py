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

_FIRST_PIECES, _MOST_STRETCHES = 16, 10
"""Pieces of a first stretch, and stretches for each link in use."""

_SPARE_PIECES, _PIECES_A_MESSAGE, _MOST_PIECES = 2**11, 2**6, 2**17
"""Pieces of all links: some, more for each message, and no more than these."""


def link_records(topology: Topology, corrections: Corrections) -> tuple[np.ndarray, np.ndarray]:
    """Corrected figures of all links, and the media, numbered by their first link.

    Where fair rates depend on gates all links are one medium, which has no list of them.
    """
    links = np.zeros(len(topology.links), LINK)
    media = _media_of(topology)
    users = [link for own in media for link in own]
    links["medium"][users] = np.repeat(np.arange(len(media)), list(map(len, media)))
    bandwidth, latency = corrections.wan_bandwidth_factor, corrections.wan_latency_factor
    links["bandwidth_bytes_per_s"] = [link.bandwidth_bytes_per_s for link in topology.links]
    links["latency_s"] = [link.latency_s for link in topology.links]
    links["round_trip_s"] = topology.round_trips_s
    links["cap_bytes_per_s"] = topology.message_caps_bytes_per_s
    for name, factor in (("bandwidth_bytes_per_s", bandwidth), ("cap_bytes_per_s", bandwidth),
                         ("latency_s", latency), ("round_trip_s", latency)):  # fmt: skip
        links[name] *= factor
    for index in range(len(links) if topology.transport.hosts is not None else 0):
        window = hop_window(topology, index, corrections)
        for name, figure in () if window is None else window._asdict().items():
            links[name][index] = figure
    counts = np.zeros(len(links), np.int64)
    for gate in topology.gates:
        counts[list(gate.links)] += 1
    links["end_gate"] = np.cumsum(counts)
    links["first_gate"] = links["end_gate"] - counts
    return links, np.array([(*own, -1)[:2] for own in media], MEDIUM)


def _media_of(topology: Topology) -> list[list[int]]:
    """Links of each medium, in the order of the first of them."""
    transport, every = topology.transport, range(len(topology.links))
    if transport.sharing == "fair" and topology.gates:
        return [list(every)] if every else []
    if not transport.half_duplex:
        return [[link] for link in every]
    found: dict[tuple[int, ...], list[int]] = {}
    for ends, link in topology.link_index.items():
        found.setdefault(tuple(sorted(ends)), []).append(link)
    return list(found.values())


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
    """Courses of links by any law, computed where they were requested; elsewhere they have gaps.

    A stretch that continues another is twice as long, so that few runs follow a message over many
    pieces. Pieces and stretches are bounded: where messages last for more of them, the readable
    engine, which keeps none, is as quick.
    """

    def __init__(self, topology: Topology, num_messages: int) -> None:
        assert topology.movement is not None
        self._most = min(_SPARE_PIECES + _PIECES_A_MESSAGE * num_messages, _MOST_PIECES)
        self._weather = Weather(topology.movement, topology.links)
        self._pieces = [np.zeros(0, PIECE)] * len(topology.links)
        self._room = [_FIRST_PIECES] * len(topology.links)
        self._num_stretches = 0

    def extend(self, link: int, time_s: float, horizon_s: float) -> bool:
        """Compute a stretch of a course from a time on, to a horizon or as far as there is room.

        Returns
        -------
        bool
            Whether the course is known at the time: not where a trace has ended before, or where
            there is no room.
        """
        known, found = self._pieces[link], list[tuple[float, ...]]()
        place, until_s = int(np.searchsorted(known["until_s"], time_s, "right")), time_s
        self._num_stretches += 1
        try:
            since_s = self._weather.span(link, time_s)[0]
            is_continued = place > 0 and since_s <= known["until_s"][place - 1]
            self._room[link] = 2 * self._room[link] if is_continued else _FIRST_PIECES
            while len(found) < self._room[link] and until_s <= horizon_s:
                since_s, until_s, *factors = self._weather.span(link, until_s)
                found.append((until_s, since_s, *factors))
                if place < len(known) and known["until_s"][place] <= until_s:
                    known = np.delete(known, place)  # the same, perhaps from a later time on
                    break
        except ValueError:  # a trace has ended; reading past its end is an error there
            pass
        self._pieces[link] = np.insert(known, place, np.array(found, PIECE))
        num_used = sum(len(pieces) > 0 for pieces in self._pieces)
        return (
            len(found) > 0
            and sum(map(len, self._pieces)) <= self._most
            and self._num_stretches <= _MOST_STRETCHES * (1 + num_used)
        )

    def write(self, links: np.ndarray) -> np.ndarray:
        """Return all pieces, link by link, and tell the links where theirs are."""
        counts = [len(pieces) for pieces in self._pieces]
        ends = np.cumsum(counts)
        links["end_piece"] = ends
        links["first_piece"] = ends - counts
        return np.concatenate(self._pieces)
