"""Launch files: a bound plan as what its trainer takes, ready to run."""
