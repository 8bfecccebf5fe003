"""Worlds of any number of domains, drawn on a plane."""

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np

from des.base.checks import require_count, require_non_negative, require_positive
from des.dynamics import STEADY, UniformLaw
from des.world.domain import Domain
from des.world.topology import MOST_DOMAINS, Link, Topology
from des.worlds import EAST_CENTRAL_WEST
from des.worlds.reading import read_topology

LEAST_BANDWIDTH_BYTES_PER_S = 1e9 / 8
"""No drawn link has less than 1 Gbit/s."""

LOWEST_BANDWIDTH_FACTOR, HIGHEST_BANDWIDTH_FACTOR = 0.3, 2.0
"""Bounds of a drawn bandwidth, as parts of the mean."""

BANDWIDTH_LOG_DEVIATION, PRICE_LOG_DEVIATION = 0.5, 0.6
"""Standard deviations of the logarithms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneWorlds:
    """Equal domains at random places, every two joined by a link that is the same both ways.

    Domains lie uniformly in a square. The latency of a link rises in a straight line with its
    length, from ``lowest_latency_s`` for none to ``highest_latency_s`` for the diagonal. Its
    bandwidth does not depend on the length: log-normal with that mean, then bounded to 0.3 to 2
    times the mean and to 1 Gbit/s at least. Link prices are log-normal; None gives no prices, and
    the links are the same with prices or without. Domains are those of East-Central-West.
    """

    num_domains: int
    mean_bandwidth_bytes_per_s: float = 5e9 / 8
    lowest_latency_s: float = 0.005
    highest_latency_s: float = 0.120
    mean_price_usd_per_gb: float | None = None
    gpu_price_usd_per_hour: float | None = None
    dynamics: UniformLaw = STEADY

    def __post_init__(self) -> None:
        owner = "generator"
        require_count(owner, "num_domains", self.num_domains, MOST_DOMAINS)
        require_positive(owner, "mean_bandwidth_bytes_per_s", self.mean_bandwidth_bytes_per_s)
        if self.mean_bandwidth_bytes_per_s < LEAST_BANDWIDTH_BYTES_PER_S:
            raise ValueError(
                f"{owner}: mean_bandwidth_bytes_per_s must be at least that of the slowest link, "
                f"{LEAST_BANDWIDTH_BYTES_PER_S!r}, got {self.mean_bandwidth_bytes_per_s!r}"
            )
        require_non_negative(owner, "lowest_latency_s", self.lowest_latency_s)
        require_non_negative(owner, "highest_latency_s", self.highest_latency_s)
        if self.lowest_latency_s > self.highest_latency_s:
            raise ValueError(
                f"{owner}: lowest_latency_s must be at most highest_latency_s "
                f"{self.highest_latency_s!r}, got {self.lowest_latency_s!r}"
            )
        for field in ("mean_price_usd_per_gb", "gpu_price_usd_per_hour"):
            price = getattr(self, field)
            if price is not None:
                require_non_negative(owner, field, price)

    def draw(self, rng: np.random.Generator) -> Topology:
        """Draw one world; its domains are called domain0, domain1 and so on."""
        model = _model_domain()
        domains = [
            replace(
                model,
                name=f"domain{index}",
                gpu_price_usd_per_hour=self.gpu_price_usd_per_hour,
            )
            for index in range(self.num_domains)
        ]
        links = []
        pairs = combinations([domain.name for domain in domains], 2)
        for pair, bandwidth, latency_s, price in zip(pairs, *self._figures(rng), strict=True):
            link = Link(
                source=pair[0],
                target=pair[1],
                bandwidth_bytes_per_s=bandwidth,
                latency_s=latency_s,
                price_usd_per_gb=price,
            )
            links += [link, replace(link, source=pair[1], target=pair[0])]
        return Topology.of(domains, links, self.dynamics)

    def _figures(
        self, rng: np.random.Generator
    ) -> tuple[list[float], list[float], list[float] | list[None]]:
        """Bandwidth [bytes/s], latency [s] and price [USD/GB] of each pair of domains in order."""
        one, other = np.triu_indices(self.num_domains, k=1)  # the order of `combinations`
        places = rng.uniform(size=(self.num_domains, 2))
        length_fraction = np.hypot(*(places[one] - places[other]).T) / math.sqrt(2)
        span_s = self.highest_latency_s - self.lowest_latency_s
        latencies_s = self.lowest_latency_s + span_s * length_fraction
        mean = self.mean_bandwidth_bytes_per_s
        bandwidths = np.clip(
            mean * _draw_factors(rng, len(one), BANDWIDTH_LOG_DEVIATION),
            max(LOWEST_BANDWIDTH_FACTOR * mean, LEAST_BANDWIDTH_BYTES_PER_S),
            HIGHEST_BANDWIDTH_FACTOR * mean,
        )
        prices: list[float] | list[None] = [None] * len(one)
        if self.mean_price_usd_per_gb is not None:
            factors = _draw_factors(rng, len(one), PRICE_LOG_DEVIATION)
            prices = (self.mean_price_usd_per_gb * factors).tolist()
        return bandwidths.tolist(), latencies_s.tolist(), prices


@cache
def _model_domain() -> Domain:
    """A domain of East-Central-West, whose file takes longer to read than a world to draw."""
    return read_topology(EAST_CENTRAL_WEST).domains[0]


def _draw_factors(rng: np.random.Generator, count: int, log_deviation: float) -> np.ndarray:
    """Log-normal factors of mean 1, shaped (count,)."""
    return rng.lognormal(-(log_deviation**2) / 2, log_deviation, size=count)
