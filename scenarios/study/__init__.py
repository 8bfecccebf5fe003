"""Measurements of policies and planners."""
