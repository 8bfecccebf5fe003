"""Comparison of planners and schedulers."""
