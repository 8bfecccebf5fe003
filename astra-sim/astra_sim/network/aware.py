"""The congestion-aware network: messages queue for links.

Two extensions. *Several dimensions*, if requested or if one of them is ``Pairwise``: a message goes
by dimension 0 first, inside its source's domain, then by dimension 1 and so on, stored and
forwarded by every link on the way. A link of a higher dimension belongs to the two places it joins
(two domains, say), not to NPUs: all pairs of NPUs that cross it share it, first come first served.
A message to itself has no link then, not even under a switch. *Bandwidth changes* hold for a link
from their time on, also for the message that it is sending.
"""

from astra_sim.core.events import Event, EventQueue
from astra_sim.files.errors import AbortError, AstraSimUsageError
from astra_sim.files.network_config import NetworkConfig
from astra_sim.network.bandwidth import LinkRates
from astra_sim.network.links import NetworkLink, crossing
from astra_sim.network.routes import LinkPlace, check_npu, differing_dimensions, links_within


class AwareNetwork:
    """Store and forward over directed links, each first come first served."""

    __slots__ = ("_config", "_links", "_num_npus", "_queue", "_rates", "_routes")

    def __init__(
        self, config: NetworkConfig, queue: EventQueue, *, multi_dimensional: bool = False
    ) -> None:
        patterns = [dimension.topology for dimension in config.dimensions]
        if len(patterns) > 1 and not multi_dimensional and "Pairwise" not in patterns:
            raise AstraSimUsageError(
                "network: the aware network must have one dimension unless --multi-dimensional "
                f"is given, got {len(patterns)}"
            )
        for number, dimension in enumerate(config.dimensions):
            if dimension.topology == "Ring" and dimension.num_npus == 2:
                raise AbortError(
                    f"network: dimension {number}: an aware Ring must have at least 3 NPUs, got 2"
                )
        self._config = config
        self._num_npus = config.num_npus
        self._queue = queue
        self._rates = LinkRates(config)
        self._links: dict[LinkPlace, NetworkLink] = {}
        self._routes: list[dict[int, tuple[NetworkLink, ...]]] = [{} for _ in range(self._num_npus)]

    def steady_delay_ns(self, source: int, target: int, num_bytes: int) -> int | None:
        """None: a message may have to queue."""
        return None

    def links(self, source: int, target: int) -> tuple[NetworkLink, ...]:
        """Links from one NPU to another."""
        return self._routes[source].get(target) or self._route(source, target)

    def send(
        self,
        source: int,
        target: int,
        num_bytes: int,
        arrival: Event,
    ) -> None:
        """Put a message on the first link of its route."""
        links = self._routes[source].get(target) or self._route(source, target)
        links[0].carry(num_bytes, crossing(links, 1, num_bytes, arrival))

    def _route(self, source: int, target: int) -> tuple[NetworkLink, ...]:
        """Links from one NPU to another, remembered."""
        check_npu(self._num_npus, target)
        config = self._config
        if source == target:
            crossings = [(0, 0, source, target)] if self._is_one_switch() else []
        else:
            crossings = list(differing_dimensions(config, source, target))
        links = tuple(
            self._link(LinkPlace(number, group, *ends))
            for number, group, here, there in crossings
            for ends in links_within(config.dimensions[number], here, there)
        )
        if not links:
            raise AbortError(f"message: source and target must differ, got NPU {source} twice")
        self._routes[source][target] = links
        return links

    def _is_one_switch(self) -> bool:
        return [dimension.topology for dimension in self._config.dimensions] == ["Switch"]

    def _link(self, place: LinkPlace) -> NetworkLink:
        link = self._links.get(place)
        if link is None:
            number, _, source, target = place
            link = self._links[place] = NetworkLink(
                self._queue,
                latency_ns=self._config.dimensions[number].link_latency_ns(source, target),
                rate=self._rates.of_link(number, source, target),
            )
        return link
