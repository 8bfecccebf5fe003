"""How much slower training gets where bandwidths and latencies fluctuate, whoever plans."""
