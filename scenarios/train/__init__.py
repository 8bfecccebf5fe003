"""Training of policies as commands."""
