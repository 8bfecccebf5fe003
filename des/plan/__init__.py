"""Plans: placement, parallelism, synchronisation and correction factors."""
