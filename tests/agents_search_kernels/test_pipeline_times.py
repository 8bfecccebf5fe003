"""Times of pipelines by recurrence are those of the simulator, and misfits are its misfits."""

from dataclasses import replace

import pytest
from hypothesis import given
from search_candidates import candidates, fits

from agents.search.kernels.pipeline_times import MISFIT
from agents.search.settings import INTERLEAVED
from des.compiled.simulate import makespan_compiled_s
from des.program.lowering import lower


def time_s(desk, candidate):
    return desk.time_s(candidate.setting, candidate.chains[0], candidate.splits[0])


@given(candidates())
def test_times_are_those_of_the_simulator(case):
    """Up to rounding: times of a stage are differences of sums over layers here.

    Any schedule, sends that wait or not, stages that share a link, sums over copies behind it.
    """
    desk, candidate = case
    found_s = time_s(desk, candidate)
    if found_s < MISFIT:
        workload, plan = candidate.setting.workload(desk.job), candidate.plan(desk.topology)
        exact_s = makespan_compiled_s(desk.topology, lower(desk.topology, workload, plan))
        assert found_s == pytest.approx(exact_s, rel=1e-12)


@given(candidates())
def test_misfits_are_those_that_the_simulator_refuses(case):
    desk, candidate = case

    assert (time_s(desk, candidate) < MISFIT) == fits(desk, candidate)


@given(candidates(schedules=(INTERLEAVED,)))
def test_a_last_group_smaller_than_the_pipeline_has_no_time_where_groups_are_whole(case):
    desk, candidate = case
    size = round(candidate.setting.group_factor * candidate.num_workers)
    rest = desk.num_microbatches(candidate.setting) % size
    strict = replace(candidate, setting=replace(candidate.setting, whole_groups=True))

    if 0 < rest < candidate.num_workers:
        assert time_s(desk, strict) == float("inf")
    else:
        assert time_s(desk, strict) == time_s(desk, candidate)
