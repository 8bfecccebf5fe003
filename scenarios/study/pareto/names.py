"""Choices of users of `scenarios.pareto`, without the modules that are slow to load."""

TABLE_NAMES = ("all_gpus", "used_gpus", "activations")
"""Keys of `scenarios.study.pareto.study.TABLES`."""

NUM_DOMAINS = (5, 6, 10)
"""Sizes of the worlds."""

NUM_PREFERENCES = 36
"""Weights of one sweep."""
