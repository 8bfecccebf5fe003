"""Scaling policies, by the names that commands take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from agents.ppo.shipped_weights import shipped_weights
from agents.serving.forecast_policies import Oracle, PeakHold, Predictive, SlaPlanner
from agents.serving.load_policies import (
    HpaPolicy,
    KedaPolicy,
    Llumnix,
    LoadPlanner,
    QueueLength,
    Saturation,
    Static,
    Threshold,
)
from des.base.checks import require_known
from des.base.lazy import lazy_imports
from des.serving.fleet_world import ScalingPolicy

with lazy_imports(__name__):
    from agents.serving import learnt_policy

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
    "peak": PeakHold,
    "oracle": Oracle,
}
"""Rules with their default settings; `oracle` has the trace."""
LEARNT = "rl"
"""Name of the policy that was trained."""
SHIPPED_SEEDS = tuple(shipped_weights("autoscale"))
"""Checkpoints of the seeds that come with the package."""
SHIPPED = SHIPPED_SEEDS[0]
POLICY_NAMES = (*RULES, LEARNT)


def scaling_policy(name: str, checkpoint: Path | None = None) -> ScalingPolicy:
    """Make a policy; the learnt one is that of a checkpoint (default: the shipped one).

    Raises
    ------
    ValueError
        If there is none of that name, or the checkpoint is wrong.
    """
    if name == LEARNT:
        return learnt_policy.learnt_policy(SHIPPED if checkpoint is None else checkpoint)
    require_known("policy: must be a known name, got", name, POLICY_NAMES)
    return RULES[name]()
