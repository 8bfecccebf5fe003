"""Scaling policies, by the names that commands take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agents.serving.cluster_policies import HpaPolicy, KedaPolicy
from agents.serving.forecast_policies import Oracle, Predictive, SlaPlanner
from agents.serving.load_policies import Llumnix, LoadPlanner, Saturation
from agents.serving.simple_policies import QueueLength, Static, Threshold
from des.base.checks import nearest
from des.base.lazy import lazy
from des.serving.fleet_world import ScalingPolicy

if TYPE_CHECKING:
    from agents.serving import learnt_policy
else:
    learnt_policy = lazy("agents.serving.learnt_policy")

RULES: Mapping[str, Callable[[], ScalingPolicy]] = {
    "static": Static,
    "threshold": Threshold,
    "hpa": HpaPolicy,
    "keda": KedaPolicy,
    "queue": QueueLength,
    "llumnix": Llumnix,
    "saturation": Saturation,
    "sla": SlaPlanner,
    "sla_arima": lambda: SlaPlanner(trend=True),
    "load": LoadPlanner,
    "predictive": Predictive,
    "oracle": Oracle,
}
"""Rules with their default settings; `oracle` has the trace."""
LEARNT = "rl"
"""Name of a policy that was trained, which needs a checkpoint."""
POLICY_NAMES = (*RULES, LEARNT)


def scaling_policy(
    name: str, checkpoint: Path | None = None, *, is_adaptive: bool = False
) -> ScalingPolicy:
    """Make a policy; the learnt one is that of a checkpoint, with adaptive steps or fixed ones.

    Raises
    ------
    ValueError
        If there is none of that name, or a learnt one without a checkpoint.
    """
    if name == LEARNT:
        if checkpoint is None:
            raise ValueError(
                "policy rl: --checkpoint must name a file of python -m "
                "scenarios.train_autoscaler, got none"
            )
        return learnt_policy.learnt_policy(checkpoint, is_adaptive=is_adaptive)
    if name not in RULES:
        raise ValueError(
            f"policy: must be a known name, got {name!r}; {nearest(name, POLICY_NAMES)}"
        )
    return RULES[name]()
