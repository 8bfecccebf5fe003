"""Job queues: workloads, policies side by side, metrics and pictures."""
