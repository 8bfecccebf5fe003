"""Correction factors by which predictions are closest to a reference."""
