"""Files of trained policies: what schedules across domains, and the worlds it has learnt on."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Self

from agents.hi_ppo.moves.move_policy import MovePolicy
from agents.hi_ppo.placement.placement_checkpoint import (
    PlacementNet,
    placement_from_payload,
    placement_payload,
)
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from agents.ppo.shipped_weights import shipped_weights, shipped_weights_of
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


_KIND = "hi_ppo"


@dataclass(frozen=True, kw_only=True)
class Policies:
    """Trained policies by which `agents.hi_ppo.coordinator.Coordinator` decides.

    Attributes
    ----------
    moves
        None moves to the best plan of each epoch, whatever that costs.
    training
        Origin of the checkpoint, as plain content: seed, command, steps.
    """

    placement: PlacementNet
    moves: MovePolicy | None
    trained_range: TrainedRange
    training: Mapping[str, object]

    def save(self, path: Path) -> None:
        """Write a checkpoint; equal policies give equal bytes."""
        payload = {
            "kind": _KIND,
            "placement": placement_payload(self.placement),
            "moves": None if self.moves is None else self.moves.payload(),
            "trained_range": self.trained_range.payload(),
            "training": dict(self.training),
        }
        save_checkpoint(path, payload)

    def decides_by(self, topology: Topology, workload: Workload) -> tuple[str, tuple[str, ...]]:
        """Weights and misfits, which all decisions on a world follow from."""
        digest = hashlib.sha256()
        for net in (self.placement, None if self.moves is None else self.moves.network):
            digest.update(repr(None if net is None else net.architecture).encode())
            for name, array in sorted({}.items() if net is None else net.numbers.items()):
                digest.update(name.encode() + array.tobytes())
        return digest.hexdigest(), self.trained_range.misfits(topology, workload)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        CheckpointError
            If the file cannot be read, holds another thing, or policies of another architecture.
        """
        payload = load_checkpoint(path)
        if payload.get("kind") != _KIND:
            raise CheckpointError(
                f"checkpoint {path}: kind must be {_KIND}, got {payload.get('kind')!r}"
            )
        placement, training = payload.get("placement"), payload.get("training")
        for name, part in (("placement", placement), ("training", training)):
            if not isinstance(part, Mapping):
                raise CheckpointError(
                    f"checkpoint {path}: {name} must be a dict, got {type(part).__name__}"
                )
        assert isinstance(placement, Mapping)
        assert isinstance(training, Mapping)
        try:
            moves = payload.get("moves")
            return cls(
                placement=placement_from_payload(placement, source=path),
                moves=None if moves is None else MovePolicy.from_payload(moves),
                trained_range=TrainedRange.from_payload(payload.get("trained_range")),
                training=training,
            )
        except CheckpointError as error:
            known = str(error)
            raise CheckpointError(
                known if str(path) in known else f"checkpoint {path}: {known}"
            ) from error
        except ValueError as error:
            raise CheckpointError(f"checkpoint {path}: {error}") from error


def shipped(seed: int = 0) -> Path:
    """Return the file of a shipped checkpoint.

    Raises
    ------
    ValueError
        If there is none of that seed; the message lists those there are.
    """
    return shipped_weights_of(_KIND, seed)


def shipped_files() -> list[Path]:
    """All shipped checkpoints, by seed."""
    return shipped_weights(_KIND)


def digest_of(path: Path) -> str:
    """SHA-256 of a file, as 64 hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
