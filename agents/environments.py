"""Environments that Gymnasium knows by name."""

from gymnasium.envs.registration import register

_ENVIRONMENTS = {
    "EastWest/Placement-v0": ("flat.env:PlacementEnv", "flat.env:PlacementVectorEnv"),
    "EastWest/Scheduling-v0": (
        "scheduling.env:SchedulingEnv",
        "scheduling.env:SchedulingVectorEnv",
    ),
    "EastWest/Autoscale-v0": ("serving.autoscale_env:AutoscaleEnv", None),
    "EastWest/Queue-v0": ("cluster.queue_env:QueueEnv", None),
    "EastWest/Spot-v0": ("hi_ppo.spot.batch:SpotEnv", None),
}
"""Environment and vector environment by name, below `agents`."""

for name, (one, many) in _ENVIRONMENTS.items():
    register(
        id=name,
        entry_point=f"agents.{one}",
        vector_entry_point=None if many is None else f"agents.{many}",
    )
