"""Autoscaling of an inference fleet: policies on a trace, and the load that a fleet bears."""
