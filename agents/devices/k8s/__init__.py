"""Decisions on pods of Kubernetes: which nodes fit, how good they are, what gangs are promised."""
