"""Sailor's planner."""
