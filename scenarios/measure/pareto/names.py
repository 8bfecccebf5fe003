"""Sizes of a study of fronts, without the modules that are slow to load."""

NUM_DOMAINS = (5, 6, 10)
"""Sizes of the worlds."""

NUM_PREFERENCES = 36
"""Weights of one sweep."""
