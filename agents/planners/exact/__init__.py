"""Planners with a proof: enumeration, bounds and CP-SAT."""
