"""Files of plan policies, with what they are made of."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.features import EDGE_SIZE, GLOBAL_SIZE, NODE_SIZE
from agents.hi_ppo.plans.plan_policy import PlanPolicy
from agents.hi_ppo.plans.sketch_judge import SKETCH_SCHEDULES
from agents.ppo.checkpoint import CheckpointError, load_checkpoint, require_held

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
    for name, allowed in expected.items():
        if payload.get(name) != allowed:
            raise CheckpointError(
                f"checkpoint {source}: {name} must be {allowed!r}, got {payload.get(name)!r}"
            )
    sizes, parameters = payload.get("architecture"), payload.get("parameters")
    try:
        if not isinstance(sizes, Mapping) or not isinstance(parameters, Mapping):
            raise TypeError("architecture and parameters must be there")
        architecture = PlacementArchitecture(**sizes)
        require_held(parameters, *architecture.chains)
        policy = PlanPolicy(architecture, SKETCH_SCHEDULES, None)
        policy.load_state_dict(parameters)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            f"checkpoint {source}: plan policy must hold an architecture and parameters of its "
            f"sizes, got {sizes!r} ({type(error).__name__}: {error})"
        ) from error
    return policy.eval()


def load_plan_policy(path: Path) -> PlanPolicy:
    """Read a plan policy.

    Raises
    ------
    CheckpointError
        If the file cannot be read, or holds another thing.
    """
    return plan_policy_from_payload(load_checkpoint(path), source=path)
