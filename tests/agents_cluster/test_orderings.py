"""Orderings: hand-computed queues of each."""

from dataclasses import replace

import numpy as np
import pytest
from queues import finishes, policy, queued, ran

from agents.cluster.fair_share import FairShare
from agents.cluster.gavel import Gavel, SharedJob, fair_finish_shares, max_min_shares
from agents.cluster.key_orderings import (
    FinishTimeFairness,
    GpuIntensity,
    HighestLoss,
    HighestPriority,
    ReportedRemaining,
    ShortestJob,
)
from agents.cluster.preempting import WorstFirst
from agents.cluster.table import ORDERINGS, policy_named
from agents.cluster.tiresias import Queues2dLas, QueuesGittins, gittins_index
from des.cluster.node_set import ClusterPlace, NodeSet
from des.plan.replacement import Replacement


def order(jobs, ordering, **world):
    """Jobs in the order in which they end, on one node of 4 GPUs."""
    history = ran(jobs, policy(ordering, preempting=WorstFirst()), **world)
    return [job.job_id for job in history.jobs]


def test_shortest_job_goes_first_and_stops_no_other():
    assert order(queued((0, 4, 50), (1, 4, 90), (2, 4, 10)), ShortestJob()) == [0, 2, 1]


def test_priority_and_intensity_preempt_at_the_quantum():
    jobs = queued((0, 4, 100), (1, 4, 10), (1, 4, 10))
    high = (*jobs[:2], replace(jobs[2], priority=1, intensity=9.0))

    assert order(high, HighestPriority(quantum_s=20.0)) == [2, 0, 1]
    assert order(high, GpuIntensity(quantum_s=20.0)) == [2, 0, 1]


def test_simulated_jobs_report_their_loss_and_throughput():
    """Job 0 has a loss of 1 / (1 + 9 x 0.4) at 20, below which job 1 comes after 200 s of its."""
    jobs = queued((0, 4, 50), (1, 4, 500))
    by_loss = ran(jobs, policy(HighestLoss(quantum_s=20.0), preempting=WorstFirst()))
    reported = ran(jobs, policy(ReportedRemaining(quantum_s=20.0), preempting=WorstFirst()))

    assert finishes(by_loss)[0] > 220.0
    assert finishes(reported) == {0: 50.0, 1: 550.0}


def test_the_worst_finish_time_fairness_goes_first():
    """At 40 job 2 has waited twice its length, job 1 a third of its."""
    jobs = queued((0, 4, 40), (0, 4, 120), (0, 4, 20))

    assert order(jobs, FinishTimeFairness(quantum_s=1000.0)) == [0, 2, 1]


def test_queues_of_tiresias_count_gpu_seconds():
    """Job 0 leaves the first queue after 10 s on 4 GPUs, and then gives way to job 1."""
    jobs = queued((0, 4, 50), (1, 4, 5))
    slow, fast = ((limit,) for limit in (1000.0, 40.0))

    assert order(jobs, Queues2dLas(limits_gpu_s=slow, quantum_s=10.0)) == [0, 1]
    assert order(jobs, Queues2dLas(limits_gpu_s=fast, quantum_s=10.0)) == [1, 0]


def test_gittins_index_of_exponential_sizes_is_their_rate():
    """Of memoryless sizes every attained service has the same index."""
    sizes = -np.log1p(-(np.arange(4000) + 0.5) / 4000) * 5.0
    for attained in (0.0, 3.0, 6.0):
        assert gittins_index(sizes, attained, ends=(6.0, 9.0)) == pytest.approx(0.2, rel=0.05)


def test_gittins_prefers_jobs_that_end_soon_by_the_sample():
    """Sizes are 40 or 4,000 GPU seconds: with 40 attained a job will be long, and waits."""
    ordering = QueuesGittins(
        sample_gpu_s=(39.0, 39.0, 4000.0), limits_gpu_s=(40.0,), quantum_s=10.0
    )
    assert order(queued((0, 4, 50), (1, 4, 5)), ordering) == [1, 0]


def test_quotas_are_borrowed_and_reclaimed():
    """Tenant a borrows all 4 GPUs; b gets its 2 back at the quantum, and no more."""
    jobs = [replace(job, tenant="a") for job in queued(*[(0, 1, 100)] * 4)]
    jobs += [replace(job, job_id=4 + job.job_id, tenant="b") for job in queued(*[(5, 1, 30)] * 3)]
    history = ran(
        tuple(jobs),
        policy(FairShare(quota_gpus={"a": 2, "b": 2}, quantum_s=10.0), preempting=WorstFirst()),
    )
    ends = finishes(history)

    assert [ends[number] for number in (0, 1)] == [100, 100]
    assert sorted(ends[number] for number in (4, 5, 6)) == [40, 40, 70]
    assert history.num_suspensions == 2


def test_max_min_shares_on_unlike_gpus():
    """Job 0 is twice as fast on type b, job 1 is not: each is better off than with equal parts."""
    shared = {"width": 1, "left_s": 1.0, "elapsed_s": 0.0, "alone_s": 1.0}
    jobs = [SharedJob(speeds=(1.0, 2.0), **shared), SharedJob(speeds=(1.0, 1.0), **shared)]
    shares = max_min_shares(jobs, [1, 1])

    assert shares.sum(axis=1) == pytest.approx([1, 1])
    assert shares[:, 1] == pytest.approx([1, 0], abs=1e-6)


def test_fair_finish_shares_favour_who_has_waited():
    """One GPU: job 0 must end 1.5 * 10 s after its arrival, so both fairnesses are 1.5."""
    jobs = [
        SharedJob(width=1, speeds=(1.0,), left_s=10.0, elapsed_s=elapsed_s, alone_s=10.0)
        for elapsed_s in (10.0, 0.0)
    ]
    shares = fair_finish_shares(jobs, [1])[:, 0]
    worst = max((job.elapsed_s + job.left_s / x) / 10 for job, x in zip(jobs, shares, strict=True))

    assert shares[0] > shares[1]
    assert worst == pytest.approx(1 + 0.5 * (1 + 5**0.5), rel=0.02)  # 1/(r-1) + 1/r = 1


def test_gavel_gives_each_job_the_type_on_which_it_is_fast():
    nodes = NodeSet(
        nodes=tuple(ClusterPlace(name=kind, num_gpus=1, gpu_type=kind) for kind in "ab")
    )
    fast = ((("a", 1.0), ("b", 4.0)), (("a", 4.0), ("b", 1.0)), ())
    jobs = tuple(
        replace(job, speed_of_type=speeds)
        for job, speeds in zip(queued(*[(0, 1, 400)] * 3), fast, strict=True)
    )
    ends = finishes(ran(jobs, policy(Gavel(quantum_s=10.0), preempting=WorstFirst()), nodes=nodes))

    assert max(ends.values()) < 500  # any order of whole jobs on their wrong types takes longer
    assert ends[0] < 250
    assert ends[1] < 250


@pytest.mark.parametrize("name", sorted(set(ORDERINGS) - {"ppo"}))
def test_every_ordering_ends_all_jobs_the_same_way_twice(name):
    rng = np.random.default_rng(1)
    arrivals = np.sort(rng.integers(0, 3000, 14)).tolist()
    jobs = queued(
        *((at, int(rng.choice((1, 2, 4))), int(rng.integers(50, 900))) for at in arrivals)
    )
    parts = policy_named(name)
    world = {"replacement": Replacement(restart_s=5.0), "nodes": 2}
    history = ran(jobs, parts, **world)

    assert sorted(finishes(history)) == list(range(14))
    assert ran(jobs, parts, **world) == history
    assert all(job.served_s >= job.service_s - 1e-6 for job in history.jobs)
