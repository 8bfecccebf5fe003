"""Occasions on which plans are searched again: when an observation moves something that matters."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from des import Topology
from des.base.checks import require_count, require_non_negative


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSearch:
    """World of the latest search: rates of sites and links by name, and the step in force."""

    time_s: float
    present_s: float
    rates: Mapping[str, float]

    @classmethod
    def of(cls, time_s: float, present_s: float, topology: Topology) -> "LastSearch":
        """Return what a search saw."""
        return cls(time_s=time_s, present_s=present_s, rates=dict(_rates(topology)))

    @classmethod
    def of_plain(cls, content: Mapping[str, Any]) -> "LastSearch":
        """Return the search that `plain` returned."""
        return cls(**content)

    def plain(self) -> dict[str, object]:
        """Return the fields as plain values."""
        return asdict(self)


def _rates(topology: Topology) -> Iterator[tuple[str, float]]:
    """FLOP/s of sites and bytes/s of links."""
    for site in topology.domains:
        yield site.name, site.attainable_flops_per_s
    for link in topology.links:
        yield f"{link.source}->{link.target}", link.bandwidth_bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTriggers:
    """Rule by which to search: the plan in force is slower, or something else quicker.

    Attributes
    ----------
    slower
        Share by which a step of the plan in force is longer than at the latest search.
    quicker
        Share by which a rate of any site or link is higher; one that is new counts.
    every_s
        Time between searches at least, where something is quicker. [s]
    every_iterations
        Steps of the plan in force after which to search anyway; None: never.
    """

    slower: float = 0.05
    quicker: float = 0.25
    every_s: float = 600.0
    every_iterations: int | None = None

    def __post_init__(self) -> None:
        if self.every_iterations is not None:
            require_count("search triggers", "every_iterations", self.every_iterations)
        for name in ("slower", "quicker", "every_s"):
            require_non_negative("search triggers", name, getattr(self, name))

    def why(
        self, last: LastSearch | None, topology: Topology, present_s: float, time_s: float
    ) -> str:
        """Say what calls for a search; empty where nothing does.

        Parameters
        ----------
        present_s
            Time of a step of the plan in force. [s]
        """
        if last is None:
            return "the first search"
        if present_s > (1.0 + self.slower) * last.present_s:
            return f"the plan in force is {present_s / last.present_s - 1.0:.0%} slower"
        every = self.every_iterations
        if every is not None and time_s >= last.time_s + every * present_s:
            return f"{every} iterations have passed"
        if time_s < last.time_s + self.every_s:
            return ""
        for name, rate in _rates(topology):
            known = last.rates.get(name, 0.0)
            if rate > (1.0 + self.quicker) * known:
                return f"{name} is {f'{rate / known - 1.0:.0%} quicker' if known else 'new'}"
        return ""
