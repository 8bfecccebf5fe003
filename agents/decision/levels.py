"""Levels of moves, by number."""

from agents.decision.situation import MoveLevel

LEVELS: tuple[MoveLevel, ...] = ("nothing", "depth", "split", "order")
"""Levels of moves by the number that stands for them in tables, the least first."""
