"""Planners: each looks at one decision and returns a plan."""
