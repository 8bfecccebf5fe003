"""Cases: sampled placements and their measurements."""
