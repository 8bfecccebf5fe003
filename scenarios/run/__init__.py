"""One training run over time as a command."""
