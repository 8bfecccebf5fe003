"""Worlds on which a front exists: priced links, five domains or more, transfers that matter."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from des import Topology, Workload
from des.base.checks import require_count, require_seed
from des.base.random_numbers import derived_seed
from scenarios.study.pareto.names import NUM_DOMAINS
from scenarios.suites import SuiteWorld, suite

PRICE_SIGMA = 0.6
"""Standard deviation of the logarithm of prices."""

MEDIAN_USD_PER_GB = 0.02
"""Median price of links: about the price of a cloud provider between two of its regions."""

SUITE = "eval_static"
RATIOS = (0.5, 1.0)
"""Transfer/compute ratios of the suite at which several domains pay."""

_PRICES = 2
_MOST_TRIES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedWorld:
    """A job on domains joined by links with prices, all standing still."""

    name: str
    topology: Topology
    workload: Workload
    ratio: float
    schedule: str


def priced(topology: Topology, seed: int) -> Topology:
    """Give every direction of a link a price: log-normal about `MEDIAN_USD_PER_GB`.

    Prices depend on the seed and on the position of the link alone.

    Raises
    ------
    ValueError
        If the seed is out of range.
    """
    require_seed("priced world", "seed", seed)
    factors = np.random.default_rng(seed).lognormal(0.0, PRICE_SIGMA, len(topology.links))
    links = tuple(
        replace(link, price_usd_per_gb=MEDIAN_USD_PER_GB * factor)
        for link, factor in zip(topology.links, factors.tolist(), strict=True)
    )
    return replace(topology, links=links)


def priced_worlds(
    num: int, *, num_domains: Sequence[int] = NUM_DOMAINS, seed: int = 0
) -> tuple[PricedWorld, ...]:
    """Return the first worlds of `SUITE` with these numbers of domains and `RATIOS`, with prices.

    Raises
    ------
    ValueError
        If a number is out of range, or the suite has no worlds of one of the numbers of domains.
    """
    require_count("priced worlds", "num", num)
    family = suite(SUITE).with_domains(*num_domains)
    found: list[PricedWorld] = []
    for index in range(_MOST_TRIES):
        world = family.world(index, seed)
        if world.target_ratio in RATIOS:
            found.append(_with_prices(world, seed))
        if len(found) == num:
            return tuple(found)
    raise ValueError(f"priced worlds: num must be at most {len(found)}, got {num}")


def _with_prices(world: SuiteWorld, seed: int) -> PricedWorld:
    world_key = int(world.digest[:15], 16)  # 60 bits, as keys are below 2**63
    return PricedWorld(
        name=world.name,
        topology=priced(world.topology, int(derived_seed(seed, world_key, _PRICES))),
        workload=world.workload,
        ratio=world.ratio,
        schedule=world.schedule,
    )
