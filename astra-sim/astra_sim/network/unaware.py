"""The congestion-unaware network: a message takes its time, whatever else is under way.

Two extensions. A ``Pairwise`` dimension charges every pair its own link. *Bandwidth changes*: the
bytes of a message flow at the rate of the moment, that of the slowest link on its way, and changes
meanwhile count; messages still do not disturb each other. Of two messages of equal size between the
same NPUs the later may then come up to 1 ns before the earlier, by rounding alone: without changes
equal messages keep their order.
"""

from heapq import heappush

from astra_sim.core.events import Event, EventQueue
from astra_sim.files.errors import AbortError, AstraSimUsageError
from astra_sim.files.network_config import NetworkConfig
from astra_sim.network.bandwidth import LinkRates, RateProfile
from astra_sim.network.routes import check_npu, differing_dimensions

Route = tuple[float, float, RateProfile | None]
"""Latency of all hops, rate at first, and the rate over time if it changes."""


class UnawareNetwork:
    """``floor(hops * latency + bytes / rate)`` of the lowest dimension in which addresses differ.

    The other dimensions are ignored: a message between domains whose ends also differ within the
    domain pays the way within the domain alone. Bytes are serialised once, however many the hops.
    """

    __slots__ = ("_config", "_due", "_num_npus", "_queue", "_rates", "_routes", "_times")

    def __init__(self, config: NetworkConfig, queue: EventQueue) -> None:
        self._config = config
        self._num_npus = config.num_npus
        self._queue = queue
        self._due = queue.due
        self._times = queue.times
        self._rates = LinkRates(config)
        self._routes: list[dict[int, Route]] = [{} for _ in range(self._num_npus)]

    def steady_delay_ns(self, source: int, target: int, num_bytes: int) -> int | None:
        """Time that such a message takes whenever it starts; None if bandwidths change."""
        latency_ns, bytes_per_ns, changing = self._routes[source].get(target) or self._route(
            source, target
        )
        return int(latency_ns + num_bytes / bytes_per_ns) if changing is None else None

    def links(self, source: int, target: int) -> tuple[()]:
        """None: messages never queue."""
        return ()

    def send(
        self,
        source: int,
        target: int,
        num_bytes: int,
        arrival: Event,
    ) -> None:
        """Deliver a message after its own time."""
        route = self._routes[source].get(target) or self._route(source, target)
        latency_ns, bytes_per_ns, changing = route
        now = self._queue.now
        if changing is None:
            wire_ns = num_bytes / bytes_per_ns
        else:
            wire_ns = changing.transmission_ns(now, num_bytes)
        time_ns = now + int(latency_ns + wire_ns)
        due = self._due.get(time_ns)  # `queue.insert` in place: every message comes here
        if due is None:
            self._due[time_ns] = [arrival]
            heappush(self._times, time_ns)
        else:
            due.append(arrival)

    def _route(self, source: int, target: int) -> Route:
        """Delay of a message from one NPU to another, cached."""
        check_npu(self._num_npus, target)
        config = self._config
        if source == target:
            kind = AbortError if len(config.dimensions) == 1 else AstraSimUsageError
            raise kind(f"message: source and target must differ, got NPU {source} twice")
        number, _, here, there = next(differing_dimensions(config, source, target))
        dimension = config.dimensions[number]
        latency_ns = dimension.num_hops(here, there) * dimension.link_latency_ns(here, there)
        rate = self._rates.of_way(number, here, there)
        route = latency_ns, rate.bytes_per_ns[0], None if rate.is_constant else rate
        self._routes[source][target] = route
        return route
