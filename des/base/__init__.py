"""Checks, quantities, files and compilation that all packages share."""
