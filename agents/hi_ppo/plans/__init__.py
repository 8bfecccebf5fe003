"""Proposals of whole plans: groups of domains in order, under schedules."""
