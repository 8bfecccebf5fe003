"""Pipelines of two stages, and their times by hand."""

from strategies import world

from des import IterationResult

ASYMMETRIC = world("AB", {"AB": (8.0, 0.25), "BA": (2.0, 0.5)})
"""4 bytes take 0.5 s + 0.25 s from A to B, 2 s + 0.5 s back."""


def times(result: IterationResult, stage: int) -> dict[str, tuple[float, float]]:
    """Start and end of each pass of a stage, by names such as ``"F0"``."""
    return {
        f"{span.kind}{span.microbatch}": (span.start_s, span.end_s)
        for span in result.spans
        if span.stage == stage
    }
