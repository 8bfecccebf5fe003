"""Names in a run folder of `scenarios.kpi`, without the modules that are slow to load."""

MEASURED = "measured"
"""Folder of results, one file a column and group, ``<column>-<group>.json``."""
