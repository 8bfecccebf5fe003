"""Compiled functions of the simulator."""
