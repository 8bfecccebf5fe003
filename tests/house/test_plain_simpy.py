"""The engine against an independent simulation: Resources, Stores, a process for every transfer."""

import pytest
from hypothesis import given, settings
from strategies import STATIC_SCHEDULES, cases

from bench.plain_simpy import plain_makespan_s
from des import Placement, Plan, build_workload, read_topology, simulate


@settings(deadline=None)
@given(case=cases(fully=True, single_visit=True))
def test_textbook_simpy_gives_the_same_makespan(case):
    """Where no two stages share a domain or link, so that no tie is broken either way."""
    assert simulate(*case).makespan_s == pytest.approx(plain_makespan_s(*case), rel=1e-9)


@pytest.mark.parametrize("schedule", STATIC_SCHEDULES)
@pytest.mark.parametrize("text", ["0*28,1*26,2*26", "2*40,1*40", "0*20,1*20,0*20,2*20"])
def test_textbook_simpy_agrees_on_the_shipped_world(text, schedule):
    topology, workload = read_topology("east_central_west"), build_workload("llama2_70b")
    plan = Plan(placement=Placement.parse(text), schedule=schedule)

    makespan_s = simulate(topology, workload, plan).makespan_s

    assert makespan_s == pytest.approx(plain_makespan_s(topology, workload, plan), rel=1e-9)
