"""Load of domains: how fast each computes, redrawn at a fixed number of epochs."""

from dataclasses import dataclass, replace

import numpy as np

from des import Topology
from des.base.checks import require_count, require_positive, require_seed


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadLaw:
    """Speed factor of every domain, uniform within bounds and held for ``dwell_epochs``.

    Domains are drawn on their own, and so are stretches of epochs. A factor is on the speed of
    layers, so on ``attainable_fraction``; above 1 a domain is quicker than its nominal speed.
    """

    low_factor: float = 0.8
    high_factor: float = 1.2
    dwell_epochs: int = 1

    def __post_init__(self) -> None:
        owner = "load law"
        require_positive(owner, "low_factor", self.low_factor)
        require_positive(owner, "high_factor", self.high_factor)
        if self.low_factor > self.high_factor:
            raise ValueError(
                f"{owner}: low_factor must be at most high_factor {self.high_factor!r}, "
                f"got {self.low_factor!r}"
            )
        require_count(owner, "dwell_epochs", self.dwell_epochs)

    def factors(self, num_domains: int, seed: int, epoch: int) -> np.ndarray:
        """Factors of all domains in an epoch, shaped (num_domains,).

        A function of (seed, stretch of epochs, domain) alone: more domains do not change those of
        the first ones.
        """
        require_seed("load law", "seed", seed)
        stretch = epoch // self.dwell_epochs
        rng = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, stretch]))
        return self.low_factor + (self.high_factor - self.low_factor) * rng.random(num_domains)

    def check_world(self, topology: Topology) -> None:
        """Refuse a world in which a domain could be quicker than its peak.

        Raises
        ------
        ValueError
            Naming the domain.
        """
        for domain in topology.domains:
            highest = domain.attainable_fraction * self.high_factor
            if highest > 1:
                raise ValueError(
                    f"load law: high_factor times the attainable_fraction of domain {domain.name} "
                    f"must be at most 1, got {self.high_factor!r} times "
                    f"{domain.attainable_fraction!r}"
                )


def loaded(topology: Topology, factors: np.ndarray) -> Topology:
    """Return the world with the speed of every domain times its factor.

    Raises
    ------
    ValueError
        If a domain would be quicker than its peak, or there are fewer or more factors.
    """
    domains = tuple(
        replace(domain, attainable_fraction=domain.attainable_fraction * factor)
        for domain, factor in zip(topology.domains, factors.tolist(), strict=True)
    )
    return replace(topology, domains=domains)
