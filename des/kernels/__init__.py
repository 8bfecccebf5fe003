"""Compiled code, and the scalar formulas that it shares with the readable engine."""
