"""Topology files in YAML and JSON, and link traces."""
