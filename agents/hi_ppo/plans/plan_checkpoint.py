"""Files of plan policies, with what they are made of."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.features import EDGE_SIZE, GLOBAL_SIZE, NODE_SIZE
from agents.hi_ppo.plans.plan_policy import PlanPolicy
from agents.hi_ppo.plans.sketch_judge import SKETCH_SCHEDULES
from agents.ppo.checkpoint import load_checkpoint, remade_policy, require_held

_KIND = "plan_policy"
_READS = [NODE_SIZE, EDGE_SIZE, GLOBAL_SIZE]


def plan_policy_payload(policy: PlanPolicy) -> dict[str, object]:
    """Plain content from which `plan_policy_from_payload` makes the policy again."""
    return {
        "kind": _KIND,
        "reads": _READS,
        "schedules": list(policy.schedules),
        "architecture": asdict(policy.architecture),
        "parameters": dict(policy.state_dict()),
    }


def plan_policy_from_payload(payload: Mapping[str, object], *, source: Path) -> PlanPolicy:
    """Make a plan policy again.

    Raises
    ------
    CheckpointError
        If the content is not a plan policy, or one that reads or chooses something else.
    """
    expected = {"kind": _KIND, "reads": _READS, "schedules": list(SKETCH_SCHEDULES)}
    return remade_policy(payload, source=source, expected=expected, make=_make)


def _make(sizes: Mapping[str, Any], parameters: Mapping[str, Tensor]) -> PlanPolicy:
    architecture = PlacementArchitecture(**sizes)
    require_held(parameters, *architecture.chains)
    return PlanPolicy(architecture, SKETCH_SCHEDULES, None)


def load_plan_policy(path: Path) -> PlanPolicy:
    """Read a plan policy.

    Raises
    ------
    CheckpointError
        If the file cannot be read, or holds another thing.
    """
    return plan_policy_from_payload(load_checkpoint(path), source=path)
