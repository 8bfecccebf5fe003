"""Files of placement policies, with what they are made of."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agents.decision.depths import DEPTHS
from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.decode import NUM_FACTS, NUM_PAIRS
from agents.hi_ppo.placement.features import EDGE_SIZE, GLOBAL_SIZE, NODE_SIZE
from agents.ppo.checkpoint import load_checkpoint, require_held
from agents.ppo.trained_net import LoadedNet, Numbers, TrainedNet, linear_shapes, load_net

_KIND = "placement_policy"
_READS = [NODE_SIZE, EDGE_SIZE, GLOBAL_SIZE]

NUM_ORDER_FACTS = 5
"""Facts on an order, by which its depth is chosen."""

PlacementNet = TrainedNet[PlacementArchitecture]
"""A placement policy that answers."""


def placement_payload(policy: PlacementNet) -> dict[str, object]:
    """Plain content from which `placement_from_payload` makes the policy again."""
    return {
        "kind": _KIND,
        "reads": _READS,
        "depths": list(DEPTHS),
        "architecture": _sizes_of(policy.architecture),
        "parameters": dict(policy.numbers),
    }


def placement_from_payload(
    payload: Mapping[str, object], *, source: Path
) -> LoadedNet[PlacementArchitecture]:
    """Make a policy again.

    Raises
    ------
    CheckpointError
        If the content is not a placement policy, or one that reads or chooses something else.
    """
    expected = {"kind": _KIND, "reads": _READS, "depths": list(DEPTHS)}
    return load_net(payload, source=source, expected=expected, shapes_of=_shapes_of)


def _shapes_of(
    sizes: Mapping[str, Any], parameters: Numbers
) -> tuple[PlacementArchitecture, dict[str, tuple[int, ...]]]:
    architecture = PlacementArchitecture(**sizes)
    require_held(parameters, *architecture.chains)
    return architecture, placement_shapes(architecture)


def placement_shapes(architecture: PlacementArchitecture) -> dict[str, tuple[int, ...]]:
    """Shapes of the numbers of a policy, by name."""
    width, edge = architecture.width, architecture.edge_width
    layers = {
        "encoder.node": (width, NODE_SIZE + GLOBAL_SIZE),
        "encoder.edge": (edge, EDGE_SIZE),
        "encoder.edge_out": (edge, edge),
        "encoder.whole": (width, GLOBAL_SIZE),
        "encoder.gathered": (width, 3 * width),
        "pointer.ends": (2 * width, width),
        "pointer.by_edge": (width, edge),
        "pointer.by_whole": (width, width),
        "pointer.pair": (NUM_PAIRS, width),
        "pointer.keys": (2 * width, width),
        "pointer.drift": (NUM_FACTS, 2 * width),
        "heads.summed": (width, 2 * width + NUM_ORDER_FACTS),
        "heads.depth": (len(DEPTHS), width),
        "heads.stage": (width, 4 * width + 2),
        "heads.tilt": (1, width),
        "heads.valued": (width, width),
        "heads.value": (1, width),
    }
    shapes: dict[str, tuple[int, ...]] = {"heads.log_std": ()}
    shapes |= {f"pointer.{name}": (width,) for name in ("start", "stop")}
    shapes |= {f"pointer.{name}": (edge,) for name in ("begun", "stopped")}
    for number in range(architecture.num_rounds):
        name = f"encoder.rounds.{number}"
        layers |= {
            f"{name}.sent": (2 * width, width),
            f"{name}.by_edge": (width, edge),
            f"{name}.mixed": (width, 4 * width),
            f"{name}.out": (width, width),
        }
        shapes |= {f"{name}.norm.{one}": (width,) for one in ("weight", "bias")}
    for name, (num_outputs, num_inputs) in layers.items():
        shapes |= linear_shapes(name, num_outputs, num_inputs)
    return shapes


def _sizes_of(architecture: PlacementArchitecture) -> dict[str, object]:
    """Fields of an architecture; what policies see by default is left out, as in older files."""
    sizes = asdict(architecture)
    if architecture.sees_preference:
        del sizes["sees_preference"]
    return sizes


def load_placement(path: Path) -> LoadedNet[PlacementArchitecture]:
    """Read a policy.

    Raises
    ------
    CheckpointError
        If the file cannot be read, or holds another thing.
    """
    return placement_from_payload(load_checkpoint(path), source=path)
