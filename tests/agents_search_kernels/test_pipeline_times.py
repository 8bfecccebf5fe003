"""Times of pipelines by recurrence are those of the simulator, and misfits are its misfits."""

from dataclasses import replace

import numpy as np
import pytest
from bound_cases import NODES, site, sites
from hypothesis import given
from hypothesis import strategies as st
from search_candidates import PACED, candidates, fits

from agents.decision.training_job import TrainingJob
from agents.search.candidates import Candidate
from agents.search.kernels.pipeline_times import MISFIT, staged_pipeline_s
from agents.search.kernels.records import new_room
from agents.search.schedule_choice import INTERLEAVED
from agents.search.settings import BoundSetting, Degrees
from agents.search.workspace import Workspace
from des import NO_CORRECTIONS
from des.compiled.simulate import makespan_compiled_s
from des.program.lowering import lower


def time_s(workspace, candidate):
    return workspace.time_s(candidate.setting, candidate.chains[0], candidate.splits[0])


@given(candidates())
def test_times_are_those_of_the_simulator(case):
    """Up to rounding: times of a stage are differences of sums over layers here.

    Any schedule, sends that wait or not, stages that share a link, sums over copies behind it.
    """
    workspace, candidate = case
    found_s = time_s(workspace, candidate)
    if found_s < MISFIT:
        workload, plan = (
            candidate.setting.workload(workspace.job),
            candidate.plan(workspace.topology),
        )
        exact_s = makespan_compiled_s(workspace.topology, lower(workspace.topology, workload, plan))
        assert found_s == pytest.approx(exact_s, rel=1e-12)


@given(candidates())
def test_misfits_are_those_that_the_simulator_refuses(case):
    workspace, candidate = case

    assert (time_s(workspace, candidate) < MISFIT) == fits(workspace, candidate)


@given(candidates(schedules=(INTERLEAVED,)))
def test_a_last_group_smaller_than_the_pipeline_has_no_time_where_groups_are_whole(case):
    workspace, candidate = case
    size = round(candidate.setting.group_factor * candidate.num_workers)
    rest = workspace.num_microbatches(candidate.setting) % size
    strict = replace(candidate, setting=replace(candidate.setting, whole_groups=True))

    if 0 < rest < candidate.num_workers:
        assert time_s(workspace, strict) == float("inf")
    else:
        assert time_s(workspace, strict) == time_s(workspace, candidate)


def kernel_of(workspace, candidate):
    """Time of a candidate by rules, below a limit. [s]"""
    setting, figures = candidate.setting, workspace.figures(candidate.setting)
    chain, split = np.array(candidate.chains[0]), np.array(candidate.splits[0], np.int64)

    def timed_s(rules, limit_s=np.inf):
        count, chunks = rules.num_microbatches, setting.num_chunks
        room = new_room(candidate.num_workers, chunks, 2 * chunks * count, count)
        return staged_pipeline_s(figures, rules, chain, split, room.no_counts, room, limit_s)

    return timed_s


@given(case=candidates(), share=st.floats(0.5, 1.5))
def test_a_limit_stops_only_what_takes_longer(case, share):
    workspace, candidate = case
    timed_s, rules = (
        kernel_of(workspace, candidate),
        workspace.rules(candidate.setting, is_whole=True),
    )
    own_s = timed_s(rules)

    for limit_s in (share * own_s, own_s * (1.0 - 1e-9), own_s * (1.0 + 1e-9)):
        found_s = timed_s(rules, limit_s)
        assert found_s == own_s or (found_s == np.inf and own_s >= limit_s)


def test_a_limit_stops_nothing_quicker_where_sends_that_block_fly_longer_than_they_leave():
    """Messages leave in 0.5 ms and fly for 10: each of 33 holds its sender up for both once."""
    world = sites(*(site(name, 8, NODES.resized(1)) for name in "AB"))
    setting = BoundSetting(
        degrees=Degrees(tensor=8),
        microbatch_size=1,
        recomputation="flash",
        gradient_precision="fp32",
        schedule="1f1b",
        is_blocking=True,
    )
    workspace = Workspace(
        topology=world.scaled(100.0 * np.ones(2), np.ones(2)),
        job=TrainingJob(model="llama2_7b", num_sequences=33),
        corrections=NO_CORRECTIONS,
    )
    own = Candidate(setting=setting, chains=((0, 1),), splits=(((1, 16), (1, 16)),), estimate_s=1.0)
    timed_s, rules = kernel_of(workspace, own), workspace.rules(setting, is_whole=True)

    own_s = timed_s(rules)
    assert own_s < MISFIT
    assert timed_s(rules, own_s * (1.0 + 1e-9)) == own_s


@given(case=candidates(schedules=PACED), more=st.integers(0, 40))
def test_times_of_many_microbatches_are_carried_on_from_those_of_few(case, more):
    """By the pace of a round, as long as the pipeline, after three rounds at least."""
    workspace, candidate = case
    timed_s, step = kernel_of(workspace, candidate), candidate.num_workers
    rules = workspace.rules(candidate.setting, is_whole=True)
    warm_up = int(rules.pace[0] * (step - 1)) + rules.pace[2]
    most = max(3, (2 * warm_up + step - 1) // step + 1) * step
    count = most + step + more
    few = most - (most - count) % step
    rules = rules._replace(num_microbatches=count)
    at_s, before_s = (timed_s(rules._replace(num_microbatches=each)) for each in (few, few - step))

    found_s = timed_s(rules._replace(most_microbatches=1))
    if found_s < MISFIT:
        assert found_s == pytest.approx(at_s + (count - few) / step * (at_s - before_s), rel=1e-9)
