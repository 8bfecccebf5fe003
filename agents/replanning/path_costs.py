"""Totals of an episode."""

from dataclasses import dataclass

from agents.decision.levels import MoveLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCosts:
    """Totals of an episode under one sequence of plans.

    Attributes
    ----------
    total_s
        See `agents.replanning.tables.total_s`. [s]
    change_s
        Part of it in which the plan was changed. [s]
    utilisation
        Useful FLOPs over the peak of all GPUs of all domains times ``total_s``.
    bytes_per_token
        Bytes over WAN links, moved model state included, per trained token. [bytes]
    moves
        Number of epochs that changed the plan, by level; ``nothing`` are the others but the first.
    """

    total_s: float
    change_s: float
    utilisation: float
    bytes_per_token: float
    moves: dict[MoveLevel, int]
