"""Cluster: a queue of many jobs on nodes of GPUs, scheduled by policies that are handed in."""
