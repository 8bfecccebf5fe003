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
    "bound",
)
"""Keys of `scenarios.study.targets.table.GROUPS`."""

PERFECT_GROUPS = ("pareto", "ranking")
"""Groups of perfect devices under any trainer: fronts are enumerated for them, and ASTRA-sim has an
NPU for each domain."""

SITE_GROUPS = ("time", "communication", "response", "fluctuation")
"""Groups that say something of any plan, and so on real sites."""

EPISODE_GROUPS = ("time", "communication")
"""Groups of whole episodes whose worlds may have any number of domains that a suite has."""

MEASURED = "measured"
"""Within the run folder; one file per column and group, ``<column>-<group>.json``."""
