"""Files that training Hi-PPO writes into its run folder."""

PLACEMENT_PT, PLACEMENT_CSV, POLICIES_PT = (
    "placement.safetensors",
    "placement.csv",
    "hi_ppo.safetensors",
)
"""The placement policy, one row per update of it, and all policies together."""

MOVES_PT, MOVES_CSV, TABLES = "moves.safetensors", "moves.csv", "tables"
"""The move policy, one row per update of it, and the folder of its episodes."""
