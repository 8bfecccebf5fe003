"""Files of placement policies, with what they are made of."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from agents.decision.depths import DEPTHS
from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.features import EDGE_SIZE, GLOBAL_SIZE, NODE_SIZE
from agents.hi_ppo.placement.placement_policy import PlacementPolicy
from agents.ppo.checkpoint import load_checkpoint, remade_policy, require_held

_KIND = "placement_policy"
_READS = [NODE_SIZE, EDGE_SIZE, GLOBAL_SIZE]


def placement_payload(policy: PlacementPolicy) -> dict[str, object]:
    """Plain content from which `placement_from_payload` makes the policy again."""
    return {
        "kind": _KIND,
        "reads": _READS,
        "depths": list(DEPTHS),
        "architecture": _sizes_of(policy.architecture),
        "parameters": dict(policy.state_dict()),
    }


def placement_from_payload(payload: Mapping[str, object], *, source: Path) -> PlacementPolicy:
    """Make a policy again.

    Raises
    ------
    CheckpointError
        If the content is not a placement policy, or one that reads or chooses something else.
    """
    expected = {"kind": _KIND, "reads": _READS, "depths": list(DEPTHS)}
    return remade_policy(payload, source=source, expected=expected, make=_make)


def _make(sizes: Mapping[str, Any], parameters: Mapping[str, Tensor]) -> PlacementPolicy:
    architecture = PlacementArchitecture(**sizes)
    require_held(parameters, *architecture.chains)
    return PlacementPolicy(architecture, None)


def _sizes_of(architecture: PlacementArchitecture) -> dict[str, object]:
    """Fields of an architecture; what policies see by default is left out, as in older files."""
    sizes = asdict(architecture)
    if architecture.sees_preference:
        del sizes["sees_preference"]
    return sizes


def load_placement(path: Path) -> PlacementPolicy:
    """Read a policy.

    Raises
    ------
    CheckpointError
        If the file cannot be read, or holds another thing.
    """
    return placement_from_payload(load_checkpoint(path), source=path)
