"""Names that users of `scenarios.kpi` choose among, without the modules that are slow to load."""

METHOD_NAMES = ("search_once", "search_h1", "search_h4", "search_h8", "search_greedy")
"""Keys of `agents.hi_ppo.schedulers.METHODS`."""

GROUP_NAMES = (
    "time",
    "communication",
    "pareto",
    "response",
    "allocation",
    "gap",
    "stability",
    "fluctuation",
    "headroom",
    "ranking",
)
"""Keys of `scenarios.measure.targets.table.GROUPS`."""

MEASURED = "measured"
"""Within the run folder; one file a column and group, ``<column>-<group>.json``."""
