"""Policies of the cluster: admission, orderings, placing, preemption."""
