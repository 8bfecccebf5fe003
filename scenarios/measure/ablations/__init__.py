"""Ablations of Hi-PPO."""
