"""Decision epochs: the situation a scheduler sees, its decisions, and what they come to."""

from agents.epochs.changes import Changes
from agents.epochs.course import CourseError, CourseResult, CourseRow, run_course
from agents.epochs.history import Memory, NetworkHistory, Past
from agents.epochs.path_costs import PathCosts
from agents.epochs.pool import Pool, pool_of
from agents.epochs.situation import (
    TIME_ONLY,
    Decision,
    DomainLoad,
    MoveLevel,
    Preference,
    Scheduler,
    Situation,
    level_of,
)
from agents.epochs.steady_judge import SteadyJudge
from agents.epochs.tables import (
    LEVELS,
    EpisodeTables,
    costs_of,
    foreseen,
    held_topologies,
    held_topology,
    joined_tables,
    tables_of,
    total_s,
    with_restart_only,
)
from agents.epochs.world import DecisionWorld

__all__ = [
    "LEVELS",
    "TIME_ONLY",
    "Changes",
    "CourseError",
    "CourseResult",
    "CourseRow",
    "Decision",
    "DecisionWorld",
    "DomainLoad",
    "EpisodeTables",
    "Memory",
    "MoveLevel",
    "NetworkHistory",
    "Past",
    "PathCosts",
    "Pool",
    "Preference",
    "Scheduler",
    "Situation",
    "SteadyJudge",
    "costs_of",
    "foreseen",
    "held_topologies",
    "held_topology",
    "joined_tables",
    "level_of",
    "pool_of",
    "run_course",
    "tables_of",
    "total_s",
    "with_restart_only",
]
