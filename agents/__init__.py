"""Agents that decide where layers run; importing this makes the Gymnasium environments known.

These are ``EastWest/Placement-v0`` (`agents.flat`), ``EastWest/Scheduling-v0``
(`agents.scheduling`), ``EastWest/Autoscale-v0`` (`agents.serving`) and ``EastWest/Queue-v0``
(`agents.cluster`).
"""

import gymnasium

gymnasium.register(
    id="EastWest/Placement-v0",
    entry_point="agents.flat.env:PlacementEnv",
    vector_entry_point="agents.flat.vector_env:PlacementVectorEnv",
)
gymnasium.register(
    id="EastWest/Scheduling-v0",
    entry_point="agents.scheduling.env:SchedulingEnv",
    vector_entry_point="agents.scheduling.vector_env:SchedulingVectorEnv",
)
gymnasium.register(
    id="EastWest/Autoscale-v0",
    entry_point="agents.serving.autoscale_env:AutoscaleEnv",
)
gymnasium.register(id="EastWest/Queue-v0", entry_point="agents.cluster.queue_env:QueueEnv")
