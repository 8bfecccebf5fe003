"""Compiled code of the environment."""
