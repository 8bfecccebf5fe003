"""Exhaustive enumeration of a trainer's plans on small worlds, to compare a search with."""
