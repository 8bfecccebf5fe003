"""Names that users of `scenarios.kpi` choose among, without the modules that are slow to load."""

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
"""Within the run folder; one file per column and group, ``<column>-<group>.json``."""
