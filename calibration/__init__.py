"""Calibration: how far the simulator is off from a reference, and the factors that correct it."""

from calibration.corrections_file import read_corrections, write_corrections

__all__ = ["read_corrections", "write_corrections"]
