"""Suites of worlds: seeded families of jobs on moving networks, to train on and to judge by."""

from agents.decision.load import LoadLaw
from des.world.transfer_ratio import nominal_iteration_s, transfer_compute_ratio_of
from scenarios.suites.catalogue import (
    EVALUATION_NAMES,
    EXAMPLES_NAME,
    NAMES,
    SITE_NAMES,
    Suite,
    suite,
)
from scenarios.suites.world import Purpose, SuiteWorld, draw_purpose

__all__ = [
    "EVALUATION_NAMES",
    "EXAMPLES_NAME",
    "NAMES",
    "SITE_NAMES",
    "LoadLaw",
    "Purpose",
    "Suite",
    "SuiteWorld",
    "draw_purpose",
    "nominal_iteration_s",
    "suite",
    "transfer_compute_ratio_of",
]
