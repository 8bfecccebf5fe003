"""A plan is taken apart once: few functions see it, and fewer see its world and job as well."""

from bench.passage import START, stays_of_plan, takers_of_three

MOST_STAYS = 30
"""Stays of a plan on its way through `des.simulate`; see `bench.passage`."""
MOST_TAKERS = 15
"""Functions that take topology, workload and plan: entries, and lowering."""


def test_a_plan_ends_where_it_is_bound_and_lowered():
    stays = stays_of_plan()

    assert stays[0] == (0, ".".join(START))
    assert (2, "des.costs.feasibility.assign") in stays
    assert (3, "des.costs.bound_stages.bound_stages") in stays
    assert len(stays) <= MOST_STAYS


def test_few_functions_take_a_world_a_job_and_a_plan():
    takers = takers_of_three()

    assert "des/program/lowering.py: lower" in takers
    assert len(takers) <= MOST_TAKERS
