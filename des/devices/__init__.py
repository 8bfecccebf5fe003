"""GPUs, servers and rings inside a domain."""
