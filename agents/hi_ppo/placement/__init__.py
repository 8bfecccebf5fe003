"""The placement policy: a pointer network over domains and its training."""
