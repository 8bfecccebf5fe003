"""Predicted times of all-reduces among GPUs of a server, by the figures of their model.

The constants are those of `des.devices.link_figures` where the models of all GPUs are known, else
those of `des.devices.gpus.LINK_CLASSES`, which depend on the tokens alone.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from agents.devices.goodness import pair_figures
from agents.devices.set_tables import set_members
from des.costs.collectives import ring_all_reduce_s
from des.costs.device_collectives import all_reduce_time
from des.costs.device_groups import DeviceGroup
from des.devices.figures_file import shipped_link_figures
from des.devices.gpus import GpuTopology
from des.devices.link_figures import DeviceFigures
from des.devices.rings import Real, Whole
from des.devices.server import Server


def figures_of_models(server: Server) -> DeviceFigures | None:
    """Figures of links between GPUs; None where the model of one is not known."""
    is_known = all(gpu.model is not None for gpu in server.gpus)
    return shipped_link_figures() if is_known else None


def places_all_reduce_s(server: Server, places: Sequence[int], payload_bytes: float) -> float:
    """Time of an all-reduce among some GPUs, given by their places. [s]

    The best ring is that whose slowest hop is fastest. A single GPU has nothing to exchange.
    """
    if len(places) == 1:
        return 0.0
    figures = figures_of_models(server)
    if figures is None:
        return ring_all_reduce_s(payload_bytes, len(places), *places_ring(server, places))
    group = DeviceGroup.of_server(server, figures, places=places)
    return all_reduce_time(group, payload_bytes).time_s


def places_ring(server: Server, places: Sequence[int]) -> tuple[float, float]:
    """Bandwidth [bytes/s] and latency [s] of all rings that some GPUs can form at once."""
    figures = figures_of_models(server)
    if figures is None or len(places) == 1:
        wires = _topology(server, tuple(places)).wires
        return float(wires.ring_bandwidth_bytes_per_s[-1]), float(wires.ring_latency_s[-1])
    return DeviceGroup.of_server(server, figures, places=places).ring_hop


def set_all_reduces_s(
    server: Server, places: Sequence[int], size: int, payload_bytes: float
) -> Real:
    """Time of an all-reduce in every set of some GPUs, (2**n,); infinite for those of other sizes.

    Sets are numbered as in `agents.devices.set_tables`. Sets whose best rings have equal slowest
    hops take as long, but for those of several models, or that may form several rings of NVLinks at
    once; these are looked at one by one, those of equal tokens once.
    """
    wires = _topology(server, tuple(reversed(places))).wires  # there GPU i is bit i
    masks = np.arange(1 << len(places), dtype=np.int64)
    chosen = masks[np.bitwise_count(masks) == size]
    several = _may_have_several_rings(server, places, chosen, size)
    several |= len({gpu.model for gpu in server.gpus}) > 1  # models have their own launch times
    times_s = np.full(len(masks), np.inf)
    alike = chosen[~several]
    if len(alike):
        hops = np.column_stack(
            (wires.ring_bandwidth_bytes_per_s[alike], wires.ring_latency_s[alike])
        )
        firsts, kind = _distinct(hops)
        of_kind = [
            places_all_reduce_s(server, set_members(places, mask), payload_bytes)
            for mask in alike[firsts].tolist()
        ]
        times_s[alike] = np.array(of_kind)[kind]
    time_s: dict[bytes, float] = {}
    rows = _members_of_sets(places, chosen[several], size)
    for mask, members, code in zip(chosen[several], rows, _codes(server, rows), strict=True):
        key = code.tobytes()
        if key not in time_s:
            time_s[key] = places_all_reduce_s(server, tuple(members.tolist()), payload_bytes)
        times_s[mask] = time_s[key]
    return times_s


def _distinct(rows: Real) -> tuple[Whole, Whole]:
    """First row of each kind, and the kind of every row."""
    numbers = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        values, place = np.unique(column, return_inverse=True)
        numbers = numbers * len(values) + place
    _, firsts, kind = np.unique(numbers, return_index=True, return_inverse=True)
    return firsts, kind


def _members_of_sets(places: Sequence[int], masks: Whole, size: int) -> Whole:
    """Places of the GPUs of sets of one size, (sets, size)."""
    bits = masks[:, None] >> np.arange(len(places))[::-1] & 1
    return np.array(places)[np.nonzero(bits)[1].reshape(-1, size)]


def _codes(server: Server, members: Whole) -> Whole:
    """Numbers for tokens and models of sets: all that their times depend on, (sets, n (n + 1))."""
    tokens = np.unique(server.tokens, return_inverse=True)[1].reshape(2 * [len(server.tokens)])
    models = np.unique([str(gpu.model) for gpu in server.gpus], return_inverse=True)[1]
    rows = tokens[members[:, :, None], members[:, None, :]].reshape(
        len(members), members.shape[1] ** 2
    )
    return np.hstack((rows, models[members]))


def _may_have_several_rings(
    server: Server, places: Sequence[int], chosen: Whole, size: int
) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Whether every GPU of a set has NVLinks to two others of it, not over a switch."""
    if figures_of_models(server) is None or size == 2:
        return np.zeros(len(chosen), dtype=bool)
    joined = pair_figures(server).nvlinks[np.ix_(places, places)] > 0
    last = len(places) - 1
    found = np.ones(len(chosen), dtype=bool)
    for gpu in range(len(places)):
        others = sum(1 << last - other for other in np.flatnonzero(joined[gpu]).tolist())
        is_in = chosen >> last - gpu & 1 == 1
        found &= ~is_in | (np.bitwise_count(chosen & others) >= 2)
    return found


@lru_cache(maxsize=64)
def _topology(server: Server, places: tuple[int, ...]) -> GpuTopology:
    """Topology of some of a server's GPUs, in the given order."""
    return GpuTopology.of_server(server.part(places), figures=figures_of_models(server))
