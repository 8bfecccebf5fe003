"""Proven lower bounds on the time of a step over all plans of a space."""
