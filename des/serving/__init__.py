"""An inference service: requests, instances in pools, batches, and their scaling over time."""
