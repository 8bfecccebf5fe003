"""Foundations of the engine that know nothing of it."""
