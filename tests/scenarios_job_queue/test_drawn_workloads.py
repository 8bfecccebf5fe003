"""Workloads that are drawn: rates, means, independent streams, the same every time."""

import itertools

import numpy as np
import pytest
from queues import queued

from scenarios.job_queue.workloads import (
    DrawnJobs,
    DualLoad,
    TracedJobs,
    mean_philly_like_s,
    workload_hash,
)


def first(jobs, count):
    return list(itertools.islice(jobs, count))


def test_rates_and_means_are_those_asked():
    jobs = first(DrawnJobs(jobs_per_hour=6.0, mix="blox"), 20_000)

    assert jobs[-1].arrival_s / 3600 == pytest.approx(20_000 / 6.0, rel=0.03)
    assert np.mean([job.service_s for job in jobs]) == pytest.approx(mean_philly_like_s(), rel=0.05)
    assert np.mean([job.num_gpus for job in jobs]) == pytest.approx(1.9, rel=0.03)


def test_a_load_or_mix_leaves_the_other_streams_as_they_are():
    slow, fast, wide = (
        first(DrawnJobs(jobs_per_hour=rate, mix=mix), 50)
        for rate, mix in ((2.0, "single"), (4.0, "single"), (2.0, "blox"))
    )

    assert [job.service_s for job in slow] == [job.service_s for job in fast]
    assert [job.arrival_s for job in slow] == [job.arrival_s for job in wide]
    assert [job.arrival_s for job in slow] == pytest.approx([2 * job.arrival_s for job in fast])


def test_equal_workloads_have_equal_hashes_and_others_do_not():
    hashes = [workload_hash(DrawnJobs(jobs_per_hour=2.0, seed=seed), 100) for seed in (0, 0, 1)]

    assert hashes[0] == hashes[1] != hashes[2]


def test_short_jobs_of_a_dual_load_come_in_a_third_of_the_time():
    jobs = first(DualLoad(jobs_per_hour=6.0), 3000)
    short = [job for job in jobs if job.service_s <= 3600]
    long = [job for job in jobs if job.service_s >= 36_000]

    assert len(short) + len(long) == len(jobs)
    assert all(job.arrival_s % 21_600 >= 14_400 for job in short)
    assert len(short) / len(long) == pytest.approx(4 / 3, rel=0.1)
    assert [job.arrival_s for job in jobs] == sorted(job.arrival_s for job in jobs)


def test_arrivals_of_a_trace_become_denser_or_are_drawn():
    jobs = queued((0, 1, 5), (100, 1, 5), (300, 1, 5))

    assert [job.arrival_s for job in TracedJobs(jobs=jobs, density=2.0)] == [0, 50, 150]
    drawn = [job.arrival_s for job in TracedJobs(jobs=jobs, jobs_per_hour=2.0)]
    assert drawn == [job.arrival_s for job in first(DrawnJobs(jobs_per_hour=2.0), 3)]


def test_a_wrong_mix_is_refused():
    with pytest.raises(ValueError, match="mix must be one of single, blox; got 'double'"):
        DrawnJobs(jobs_per_hour=1.0, mix="double")
