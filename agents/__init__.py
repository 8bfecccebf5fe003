"""Agents that decide where layers run; importing this makes ``EastWest/Placement-v0`` known."""

import gymnasium

gymnasium.register(
    id="EastWest/Placement-v0",
    entry_point="agents.flat.env:PlacementEnv",
    vector_entry_point="agents.flat.vector_env:PlacementVectorEnv",
)
