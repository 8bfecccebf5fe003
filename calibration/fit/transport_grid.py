"""Laws of a transport on a grid of queues, random losses and numbers of flows."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.cases.case import Measurement, PlacementCase
from calibration.cases.message_cases import SIZES_IN_PRODUCTS, message_cases
from calibration.fit.transport_fit import fit_law, predict_with_law
from des.plan.corrections import Corrections
from des.plan.transport_law import TransportLaw
from des.world.packet_transport import PacketTransport
from des.world.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportGrid:
    """Grid of TCP settings: all combinations of queues, random losses and numbers of flows.

    Attributes
    ----------
    packets
        All other settings.
    queues_products
        Room of the queue before a link, in its bandwidth-delay products.
    loss_fractions
        Packets lost at random at each end of a link.
    nums_flows
        Connections that share a message.
    """

    packets: PacketTransport
    queues_products: tuple[float, ...]
    loss_fractions: tuple[float, ...]
    nums_flows: tuple[int, ...]

    def __post_init__(self) -> None:
        for field in ("queues_products", "loss_fractions", "nums_flows"):
            if not getattr(self, field):
                raise ValueError(f"grid of transports: {field} must have at least one, got none")
        list(self.cells())  # each checks its settings

    def cells(self) -> Iterator[PacketTransport]:
        """Settings of all cells: queues, then losses, then flows, the last changing first."""
        for products, loss, num_flows in itertools.product(
            self.queues_products, self.loss_fractions, self.nums_flows
        ):
            yield self._at(products, loss, num_flows)

    def between(self, num: int, seed: int) -> Iterator[PacketTransport]:
        """Draw settings within the grid, queues and losses evenly on a log scale.

        The share of settings without losses is that of 0 among the losses of the grid.
        """
        rng = np.random.default_rng(seed)
        positive = [loss for loss in self.loss_fractions if loss > 0.0]
        share_lossless = 1.0 - len(positive) / len(self.loss_fractions)
        for _ in range(num):
            products = _log_uniform(rng, self.queues_products)
            loss = 0.0 if rng.random() < share_lossless else _log_uniform(rng, positive)
            num_flows = round(_log_uniform(rng, self.nums_flows))
            yield self._at(products, loss, num_flows)

    def coordinates(self, packets: PacketTransport) -> np.ndarray:
        """Place of settings, as logarithms of queue, loss and flows; shape (3,).

        A loss of 0 is placed a factor of ten below the least positive one of the grid.
        """
        least = min((loss for loss in self.loss_fractions if loss > 0.0), default=1.0)
        assert packets.queue_products is not None
        losses = max(packets.loss_fraction, 0.1 * least)
        return np.log([packets.queue_products, losses, float(packets.flows)])

    def _at(self, products: float, loss: float, num_flows: int) -> PacketTransport:
        return replace(
            self.packets,
            queue_bytes=None,
            queue_products=products,
            loss_fraction=loss,
            flows=num_flows,
        )


def _log_uniform(rng: np.random.Generator, values: Sequence[float]) -> float:
    least, most = min(values), max(values)
    drawn = math.exp(rng.uniform(math.log(least), math.log(most)))
    return min(max(drawn, least), most)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTransport:
    """Cell of a grid, its law, and the mean relative error on the messages of the fit."""

    packets: PacketTransport
    law: TransportLaw
    error: float


def grid_cases(topology: Topology, packets: PacketTransport) -> list[PlacementCase]:
    """Make the single messages to which the law of a cell is fitted."""
    return message_cases(topology.with_packets(packets))


def fresh_cases(
    topology: Topology, settings: Sequence[PacketTransport], seed: int
) -> list[PlacementCase]:
    """Make one message for each of some settings, of a size and on a link that are drawn.

    Sizes lie evenly on a log scale between the least and the largest of a fit.
    """
    rng = np.random.default_rng((seed, 1))
    cases = []
    for packets in settings:
        size = _log_uniform(rng, SIZES_IN_PRODUCTS)
        of_size = message_cases(topology.with_packets(packets), (size,))
        cases.append(of_size[int(rng.integers(len(of_size)))])
    return cases


def fit_cell(
    packets: PacketTransport, cases: Sequence[PlacementCase], measured: Sequence[Measurement]
) -> FittedTransport:
    """Fit the law of one cell to its messages; as `calibration.fit.transport_fit.fit_law`."""
    law = fit_law(cases, measured, packets)
    errors = [message_error(case, found, law) for case, found in zip(cases, measured, strict=True)]
    return FittedTransport(packets=packets, law=law, error=float(np.mean(errors)))


def message_error(
    case: PlacementCase, measured: Measurement, law: TransportLaw | None = None
) -> float:
    """Relative error of the time of a message by a law, or by ideal links."""
    predicted = predict_with_law(case, Corrections(transport=law))
    return abs(predicted.makespan_s / measured.makespan_s - 1.0)


def nearest_cell(
    grid: TransportGrid, fitted: Sequence[FittedTransport], packets: PacketTransport
) -> FittedTransport:
    """Find the cell nearest to settings on a log scale; the first of several."""
    place = grid.coordinates(packets)
    distances = [np.linalg.norm(grid.coordinates(each.packets) - place) for each in fitted]
    return fitted[int(np.argmin(distances))]


def law_at(
    grid: TransportGrid, fitted: Sequence[FittedTransport], packets: PacketTransport
) -> TransportLaw:
    """Return the law of the nearest cell, its first window scaled to the number of flows."""
    cell = nearest_cell(grid, fitted, packets)
    first_bytes = cell.law.first_window_bytes * packets.flows / cell.packets.flows
    return replace(cell.law, first_window_bytes=first_bytes)
