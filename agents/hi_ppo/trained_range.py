"""The worlds that a policy has learnt on, and whether another is among them."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Self

from des import Topology, Workload
from des.world.transfer_ratio import mean_bandwidth_bytes_per_s, transfer_compute_ratio_of

Bounds = tuple[float, float]
"""Least and most, both within."""

MARGIN = 0.1
"""Relative margin by which a measured figure may pass the range: the worlds of a training are drawn
at random, and hardly one of them is just at the end of its distribution."""

_COUNTS = ("num_domains", "num_layers", "num_microbatches")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedRange:
    """Least and most of what describes the worlds of a training, at base figures.

    Attributes
    ----------
    ratio
        Transfer over compute time, R, see `des.world.transfer_ratio.transfer_compute_ratio_of`.
    bandwidth_bytes_per_s
        Of the mean over the links. [bytes/s]
    latency_s
        Of any link. [s]
    """

    num_domains: Bounds
    num_layers: Bounds
    num_microbatches: Bounds
    ratio: Bounds
    bandwidth_bytes_per_s: Bounds
    latency_s: Bounds

    def __post_init__(self) -> None:
        for field in fields(self):
            low, high = getattr(self, field.name)
            if not low <= high:
                raise ValueError(
                    f"trained range: {field.name} must have a least that is at most the most, "
                    f"got {low!r} and {high!r}"
                )

    @classmethod
    def of(cls, worlds: Iterable[tuple[Topology, Workload]]) -> Self:
        """Range of some worlds, at least one of them.

        Raises
        ------
        ValueError
            If there is none.
        """
        figures = [_figures(topology, workload) for topology, workload in worlds]
        if not figures:
            raise ValueError("trained range: worlds must be one or more, got none")
        low = {name: min(one[name][0] for one in figures) for name in figures[0]}
        high = {name: max(one[name][1] for one in figures) for name in figures[0]}
        return cls(**{name: (low[name], high[name]) for name in figures[0]})

    def joined(self, other: "TrainedRange") -> "TrainedRange":
        """Return the least range around both."""
        ours, theirs = asdict(self), asdict(other)
        return TrainedRange(
            **{
                name: (min(low, theirs[name][0]), max(high, theirs[name][1]))
                for name, (low, high) in ours.items()
            }
        )

    @classmethod
    def from_payload(cls, payload: object) -> Self:
        """Rebuild what `payload` returned.

        Raises
        ------
        ValueError
            If it is something else.
        """
        names = [field.name for field in fields(cls)]
        if not isinstance(payload, Mapping) or set(payload) != set(names):
            raise ValueError(f"trained range: must hold {', '.join(names)}; got {payload!r}")
        bounds: dict[str, Bounds] = {}
        for name in names:
            try:
                low, high = payload[name]
                bounds[name] = (float(low), float(high))
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"trained range: {name} must be a least and a most, got {payload[name]!r}"
                ) from error
        return cls(**bounds)

    def payload(self) -> dict[str, list[float]]:
        """Plain content for a checkpoint."""
        return {name: list(bounds) for name, bounds in asdict(self).items()}

    def misfits(self, topology: Topology, workload: Workload) -> tuple[str, ...]:
        """Say in which figures a world lies outside, with the range and what it has.

        Counts must be within; other figures may pass either end by `MARGIN`.
        """
        found = []
        for name, (least, most) in _figures(topology, workload).items():
            low, high = getattr(self, name)
            slack = 1.0 if name in _COUNTS else 1.0 + MARGIN
            if least < low / slack or most > high * slack:
                here = f"{least:.4g}" if least == most else f"{least:.4g} to {most:.4g}"
                found.append(f"{name} {here} is outside {low:.4g} to {high:.4g}")
        return tuple(found)


def _figures(topology: Topology, workload: Workload) -> dict[str, Bounds]:
    """Figures that describe a world; without links it has neither ratio nor link figures."""
    one = {
        "num_domains": float(topology.num_domains),
        "num_layers": float(workload.num_layers),
        "num_microbatches": float(workload.num_microbatches),
    }
    figures = {name: (value, value) for name, value in one.items()}
    if topology.links:
        ratio = transfer_compute_ratio_of(workload, topology)
        bandwidth = mean_bandwidth_bytes_per_s(topology)
        latencies_s = [link.latency_s for link in topology.links]
        figures["ratio"] = (ratio, ratio)
        figures["bandwidth_bytes_per_s"] = (bandwidth, bandwidth)
        figures["latency_s"] = (min(latencies_s), max(latencies_s))
    return figures
