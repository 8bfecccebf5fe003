"""The local agent: parallelism and GPU binding inside one domain."""
