"""One training iteration as SimPy processes on a clock."""
