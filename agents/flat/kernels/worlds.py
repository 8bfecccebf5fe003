"""Figures of drawn worlds."""

from des.base.scalar import scalar


@scalar
def within(lowest: float, highest: float, eps: float) -> float:
    """Turn a number within [-1, 1) into one between two bounds."""
    return lowest + (highest - lowest) * (eps + 1.0) / 2.0
