"""Local search over placements, splits and depths."""
