"""Pareto coverage of policies and planners."""
