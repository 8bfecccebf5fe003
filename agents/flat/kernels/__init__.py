"""Compiled functions of the placement task."""
