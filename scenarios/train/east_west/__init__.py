"""Training of Hi-PPO on a named world: its worlds, stages, choice of weights and table."""
