"""Fronts of several objectives."""
