"""The commands of calibration, a module each."""
