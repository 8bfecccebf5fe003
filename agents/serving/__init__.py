"""Autoscaling of an inference service: rules, learnt policies, and what they are paid for."""
