"""Prices of placements by the training simulator, and jobs that share WAN links."""
