"""One simulated iteration as a command."""
