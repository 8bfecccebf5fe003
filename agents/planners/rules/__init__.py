"""Planners of one formula or rule."""
