"""Compiled parts of the scheduling task."""
