"""Real nodes: the policies of job queues on machines that run processes."""
