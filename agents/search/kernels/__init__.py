"""Compiled loops of the search: orders, times of a bound pipeline, better splits of layers."""
