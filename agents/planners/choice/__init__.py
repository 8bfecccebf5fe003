"""Choices that several planners share: chains of domains, depths, the best of several plans."""
