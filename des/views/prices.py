"""Cost of iterations in dollars, at the prices of the links and GPUs of a world."""

import math
from dataclasses import dataclass, replace

from des.base.checks import require_count
from des.engine.result import IterationResult
from des.world.domain import Domain
from des.world.topology import Link, Topology

BYTES_PER_GB = 1e9
"""A decimal GB; a provider that means GiB charges 7 % less."""

SECONDS_PER_HOUR = 3600.0


class MissingPriceError(ValueError):
    """Error of a cost where a link or domain in use has no price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCost:
    """Cost of ``num_iterations`` equal iterations.

    Bytes count once for every link of their route, and each of these links charges for them. GPUs
    are paid for from the start to the end of an iteration, busy or idle: all of a domain that has
    a stage, and none of the others.
    """

    num_iterations: int
    num_bytes: float
    communication_usd: float
    gpu_hours: float
    compute_usd: float

    @property
    def total_usd(self) -> float:
        """Links and GPUs together. [USD]"""
        return self.communication_usd + self.compute_usd


def cost_of(
    result: IterationResult, topology: Topology, *, num_iterations: int = 1
) -> TrainingCost:
    """Price iterations that are all like a simulated one.

    Raises
    ------
    MissingPriceError
        If a link that carried bytes or a domain that has a stage has no price.
    ValueError
        If the result is of another topology, or the number of iterations is not one.
    """
    require_count("cost", "num_iterations", num_iterations)
    _check_links(result, topology)
    communication_usd = [
        use.num_bytes / BYTES_PER_GB * require_price(link, "price_usd_per_gb")
        for use, link in zip(result.links, topology.links, strict=True)
        if use.num_bytes > 0
    ]
    gpu_hours, compute_usd = [], []
    for domain in _domains_in_use(result, topology):
        hours = domain.num_gpus * result.makespan_s / SECONDS_PER_HOUR
        gpu_hours.append(hours)
        compute_usd.append(hours * require_price(domain, "gpu_price_usd_per_hour"))
    return TrainingCost(
        num_iterations=num_iterations,
        num_bytes=num_iterations * result.communication_cost_bytes,
        communication_usd=num_iterations * math.fsum(communication_usd),
        gpu_hours=num_iterations * math.fsum(gpu_hours),
        compute_usd=num_iterations * math.fsum(compute_usd),
    )


def has_prices(topology: Topology) -> bool:
    """Whether the world gives any price, so that a cost is meant to be known."""
    prices = [link.price_usd_per_gb for link in topology.links]
    prices += [domain.gpu_price_usd_per_hour for domain in topology.domains]
    return any(price is not None for price in prices)


def keep_counted_prices(topology: Topology) -> Topology | None:
    """Return the world with the prices that a cost counts; None where none can be stated.

    Bytes are free over links without a price, where all GPUs have one; a cost without the price of
    some GPUs would make their domains look cheap. `notes_on_prices` says what is missing.
    """
    if any(domain.gpu_price_usd_per_hour is None for domain in topology.domains):
        return None
    links = tuple(
        replace(link, price_usd_per_gb=link.price_usd_per_gb or 0.0) for link in topology.links
    )
    return replace(topology, links=links)


def notes_on_prices(topology: Topology) -> tuple[str, ...]:
    """Say which prices are missing in a world that gives some.

    Examples
    --------
    >>> from des import read_topology
    >>> notes_on_prices(read_topology("east_central_west"))
    ()
    """
    if not has_prices(topology):
        return ()
    names = [one.name for one in topology.domains if one.gpu_price_usd_per_hour is None]
    if names:
        return (
            f"no cost is stated: gpu_price_usd_per_hour is missing for {', '.join(names)}, and "
            "other prices are given",
        )
    free = [f"{one.source}->{one.target}" for one in topology.links if one.price_usd_per_gb is None]
    if not free:
        return ()
    more = f" and {len(free) - 3} more" if len(free) > 3 else ""
    return (
        f"bytes count as free over links without price_usd_per_gb: {', '.join(free[:3])}{more}",
    )


def require_price(owner: Link | Domain, field: str) -> float:
    """Price of a link or domain in use.

    Raises
    ------
    MissingPriceError
        If it has none.
    """
    price: float | None = getattr(owner, field)
    if price is None:
        name = str(owner) if isinstance(owner, Link) else f"domain {owner.name}"
        raise MissingPriceError(f"{name}: {field} must be given to reckon a cost, got None")
    return price


def _check_links(result: IterationResult, topology: Topology) -> None:
    simulated = [(link.source, link.target) for link in result.links]
    if simulated != [(link.source, link.target) for link in topology.links]:
        raise ValueError(
            f"cost: topology must be that of the result, with its {len(simulated)} links; "
            f"got one with {len(topology.links)} links or other ends"
        )


def _domains_in_use(result: IterationResult, topology: Topology) -> list[Domain]:
    """Domains that have a stage, in the order of the topology."""
    used = {stage.domain for stage in result.stages}
    domains = [domain for domain in topology.domains if domain.name in used]
    if len(domains) != len(used):
        known = ", ".join(topology.index_of)
        raise ValueError(
            f"cost: topology must have the domains of the result, {', '.join(sorted(used))}; "
            f"got {known}"
        )
    return domains
