"""DTFM's planner."""
