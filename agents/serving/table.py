"""Scaling policies, by the names that commands take."""

from collections.abc import Callable, Mapping

from agents.serving.cluster_policies import HpaPolicy, KedaPolicy
from agents.serving.forecast_policies import Oracle, Predictive, SlaPlanner
from agents.serving.load_policies import Llumnix, LoadPlanner, Saturation
from agents.serving.simple_policies import QueueLength, Static, Threshold
from des.base.checks import nearest
from des.serving.fleet_world import ScalingPolicy

POLICIES: Mapping[str, Callable[[], ScalingPolicy]] = {
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
"""Policies with their default settings; `oracle` has the trace."""


def policy_of(name: str) -> ScalingPolicy:
    """Make a policy.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if name not in POLICIES:
        raise ValueError(
            f"policy: must be a known name, got {name!r}; {nearest(name, list(POLICIES))}"
        )
    return POLICIES[name]()
