"""Admission and preemption: quotas, look-ahead, units that are freed, jobs that move."""

from dataclasses import replace

import pytest
from queues import finishes, policy, queued, ran

from agents.cluster.admission import AcceptAll, LoadThreshold, Quota
from agents.cluster.key_orderings import Fifo, HighestPriority
from agents.cluster.look_ahead import LookAheadAdmission
from agents.cluster.placing import BestFit
from agents.cluster.preempting import MakeRoom, OneUnit, WorstFirst
from agents.cluster.table import policy_named


def test_a_quota_holds_a_tenant_back_and_lets_others_pass():
    jobs = queued((0, 2, 100), (1, 2, 50), (2, 2, 10))
    jobs = tuple(replace(job, tenant="aab"[job.job_id]) for job in jobs)
    history = ran(jobs, policy(admission=Quota(of_others=2)))

    assert finishes(history) == {0: 100, 2: 12, 1: 150}
    assert {job.job_id: job.admitted_s for job in history.jobs} == {0: 0, 1: 100, 2: 2}


def test_a_job_wider_than_its_quota_runs_alone():
    history = ran(queued((0, 4, 10), (0, 1, 10)), policy(admission=Quota(of_others=2)))

    assert finishes(history) == {0: 10, 1: 20}


def test_look_ahead_chooses_what_ends_jobs_sooner():
    """Without a threshold short jobs preempt in vain here; with one they wait outside."""
    candidates = {"none": LoadThreshold(threshold=1e-9), "all": AcceptAll()}
    ahead = LookAheadAdmission(
        candidates=candidates, policy_with=lambda chosen: policy(admission=chosen), every_s=10.0
    )
    history = ran(queued((0, 1, 30), (0, 1, 30)), policy(admission=ahead))

    assert ahead.chosen == "all"
    assert finishes(history) == {0: 30, 1: 30}


def test_victims_are_those_of_the_node_that_is_cheapest_to_free():
    """The last two of the order hold the first node, a job ahead of them half of the other."""
    rows = [(0, 3, 100), (1, 1, 100), (2, 2, 100), (5, 4, 10)]
    jobs = [
        replace(job, priority=priority)
        for job, priority in zip(queued(*rows), (1, 2, 3, 5), strict=True)
    ]
    jobs[3] = replace(jobs[3], level="node", is_level_required=True)

    def suspended(preempting):
        parts = policy(HighestPriority(quantum_s=0.0), preempting=preempting)
        history = ran(tuple(jobs), parts, nodes=2)
        assert finishes(history)[3] == 15
        return sorted(job.job_id for job in history.jobs if job.suspensions)

    assert suspended(WorstFirst()) == [0, 1]
    assert suspended(OneUnit()) == [0, 2]  # job 2 goes, and takes the GPUs of the last one


def test_jobs_move_to_make_room_and_none_waits():
    """Two nodes hold a job of one GPU each, until one of them moves for a job of a whole node."""
    placing = BestFit(level="node", is_required=True)
    jobs = queued((0, 1, 100), (0, 3, 5), (1, 1, 100), (10, 4, 10))

    def history(preempting):
        parts = policy(Fifo(quantum_s=20.0), placing=placing, preempting=preempting)
        return ran(jobs, parts, nodes=2)

    assert finishes(history(None)) == {0: 100, 1: 5, 2: 101, 3: 110}
    moved = history(MakeRoom())
    assert finishes(moved) == {1: 5, 3: 30, 0: 100, 2: 101}
    assert moved.num_suspensions == 1


def test_unknown_names_are_refused_with_a_hint():
    for parts, message in (
        ({"ordering": "lass"}, "unknown ordering 'lass'; did you mean 'las'"),
        ({"ordering": "las", "placing": "bestfit"}, "did you mean 'best_fit'"),
        ({"ordering": "las", "preempting": "worst"}, "did you mean 'worst_first'"),
        ({"ordering": "las", "admission": "all"}, "unknown admission 'all'"),
        ({"ordering": "las", "admission": "load_much"}, "must end in a number, got 'much'"),
    ):
        with pytest.raises(ValueError, match=message):
            policy_named(**parts)
