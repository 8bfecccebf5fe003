"""Pools in different domains: KV memory and weights cross the links of the world, contended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from des.base.checks import require_non_negative
from des.clock import Clock, Message
from des.engine.network import Network, Parcel
from des.plan.corrections import NO_CORRECTIONS
from des.world.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSites:
    """Domain of each pool, and the domain from which instances load their weights.

    Links are those of the training world: they may queue or share fairly, move by a law, and take
    several hops.
    """

    topology: Topology
    domain_of: Mapping[str, str]
    """Name of the domain of each pool."""
    weights_from: str | None = None
    """Domain from which weights are loaded (None: within the time of a start)."""
    weights_bytes: float = 0.0

    def __post_init__(self) -> None:
        known = tuple(domain.name for domain in self.topology.domains)
        for owner, domain in (*self.domain_of.items(), ("weights_from", self.weights_from)):
            if domain is not None and domain not in known:
                raise ValueError(
                    f"sites: domain of {owner} must be one of {', '.join(known)}, got {domain!r}"
                )
        require_non_negative("sites", "weights_bytes", self.weights_bytes)
        positions = self.topology.index_of
        ends = [positions[domain] for domain in dict.fromkeys(self.domain_of.values())]
        sources = ends if self.weights_from is None else [*ends, positions[self.weights_from]]
        for source in sources:
            for target in ends:
                if source != target:
                    self.topology.route(source, target)  # raises where there is no way


class FleetLinks:
    """Messages of a fleet over the links of its sites, which start at the present of the clock."""

    def __init__(self, clock: Clock, sites: FleetSites) -> None:
        self._clock, self._sites = clock, sites
        self._network = Network(clock, sites.topology, NO_CORRECTIONS)
        self._num_sent = 0

    @property
    def has_weights(self) -> bool:
        """Whether weights are loaded over the links."""
        return self._sites.weights_from is not None

    def are_apart(self, source: str, target: str) -> bool:
        """Whether two pools are in different domains."""
        return self._sites.domain_of[source] != self._sites.domain_of[target]

    def send_kv(
        self, source: str, target: str, num_bytes: float, arrived: Callable[[], None]
    ) -> None:
        """Send KV memory from pool to pool."""
        domains = self._sites.domain_of
        self._send(domains[source], domains[target], num_bytes, "KV", arrived)

    def load_weights(self, pool: str, arrived: Callable[[], None]) -> None:
        """Send the weights of one instance to the domain of its pool; in one domain at once."""
        sites = self._sites
        assert sites.weights_from is not None
        target = sites.domain_of[pool]
        if target == sites.weights_from:
            arrived()
            return
        self._send(sites.weights_from, target, sites.weights_bytes, "W", arrived)

    def _send(
        self,
        source: str,
        target: str,
        num_bytes: float,
        kind: str,
        arrived: Callable[[], None],
    ) -> None:
        topology = self._sites.topology
        ends = topology.index_of[source], topology.index_of[target]
        parcel = Parcel(
            num_bytes=num_bytes, route=topology.route(*ends), stage=0, kind=kind, sender=ends[0]
        )
        message = Message(self._clock, self._num_sent, self._num_sent)
        self._num_sent += 1
        message.callbacks.append(lambda _: arrived())
        self._network.way(parcel)(message, self._clock.now)
