"""The contract of schedulers and planners: situation, decision, preference."""
