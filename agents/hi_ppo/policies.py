"""Files of trained policies: what schedules across domains, and the worlds it has learnt on."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agents.hi_ppo.moves.move_policy import MovePolicy
from agents.hi_ppo.placement.placement_checkpoint import (
    PlacementNet,
    placement_from_payload,
    placement_payload,
)
from agents.hi_ppo.trained_range import TrainedRange
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from agents.ppo.shipped_weights import shipped_weights, shipped_weights_of
from des import Topology, Workload

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
