"""Hi-PPO: placement policy, move policy and local agent, and the coordinator that joins them."""
