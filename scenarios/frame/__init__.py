"""Frame of every command: flags, run folders, reports, plots and statistics."""
