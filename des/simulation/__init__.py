"""Entries of the readable engine: they lower plans and run the programs."""
