"""Judging of plans: times of many plans, water filling and look-ahead."""
