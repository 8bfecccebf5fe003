"""Features that an architecture of the placement policy sees."""

from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.features import Features

PREFERENCE = slice(6, 9)
"""Entries of `Features.whole` with the weights of time, utilisation and communication."""


def seen_by(architecture: PlacementArchitecture, features: Features) -> Features:
    """Features as a policy sees them, in its training and in use.

    For one that is not told the preference its weights are 0, which no preference has.
    """
    if architecture.sees_preference:
        return features
    whole = features.whole.copy()
    whole[PREFERENCE] = 0.0
    return features._replace(whole=whole)
