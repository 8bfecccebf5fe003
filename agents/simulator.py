"""The one door to simulation backends."""

from collections.abc import Callable

from des import Corrections, IterationResult, Plan, Topology, Workload

Simulator = Callable[[Topology, Workload, Plan, Corrections], IterationResult]
"""Anything that judges a plan: `des.simulate`, or another backend."""
