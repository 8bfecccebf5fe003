"""Trainers: programs that train a model, and the plans that each of them can run."""
