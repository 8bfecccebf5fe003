"""Readers of ASTRA-sim's files."""
