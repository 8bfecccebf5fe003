"""Robustness curves over bandwidth and latency changes."""
