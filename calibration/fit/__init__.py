"""Fitted correction factors and the fidelity they reach."""
