"""Agents that decide where layers run; importing this makes the Gymnasium environments known.

These are ``EastWest/Placement-v0`` (`agents.flat`) and ``EastWest/Scheduling-v0``
(`agents.scheduling`).
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
