"""Measured training runs: predicted by the simulator, and what layer times are fitted to."""
