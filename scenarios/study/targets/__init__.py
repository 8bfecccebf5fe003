"""The targets of the project, a module each."""
