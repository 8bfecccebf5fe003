"""Kubernetes' side of devices: calls of a scheduler's extender, pods, descriptions of nodes."""
