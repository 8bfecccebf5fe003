"""Schedules to choose from: one list of warm-up depths."""

DEPTHS = ("1f1b", "1f1b_2x", "1f1b_4x", "1f1b_8x", "gpipe")
"""Default schedules of a search, those with the fewest warm-up forwards first."""
