"""Proximal policy optimisation: configuration, rollouts, networks, checkpoints and updates."""
