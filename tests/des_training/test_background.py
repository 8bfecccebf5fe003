"""Background jobs are an M/M/c queue in each domain, and take a share of its rate and memory."""

import heapq
import math
from dataclasses import replace
from itertools import pairwise, takewhile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import free_world, plan, topologies, unit_workload

from des import simulate
from des.clock import Clock
from des.training.background import (
    Background,
    BackgroundLoad,
    LoadSample,
    beside_jobs,
    domain_rng,
    draw_jobs,
)
from des.training.replayed_load import ReplayedLoad
from des.world.domain_load import IDLE, DomainLoad

LOAD = BackgroundLoad(
    arrivals_per_s=0.25, mean_duration_s=8.0, gpu_fraction=0.25, memory_fraction=0.125, most_jobs=3
)


def load_of(sample):
    """The load of a domain as a sample has it."""
    return DomainLoad(
        utilisation=sample.gpu_utilisation,
        memory_occupancy=sample.memory_occupancy,
        queue_length=sample.queue_length,
    )


def run(loads, until_s, *, seed=0):
    """Let the jobs of as many domains come and go for a time."""
    clock = Clock()
    background = Background(clock, free_world(len(loads)), loads, seed)
    clock.run(until=clock.at(until_s))
    return background


def expected_samples(load, seed, domain, until_s):
    """The loads of a domain from the jobs alone: each takes the slot that is free first."""
    free_at_s = [0.0] * load.most_jobs
    waiting, running = [], []
    jobs = draw_jobs(load, domain_rng(seed, domain))
    for job in takewhile(lambda job: job.arrival_s <= until_s, jobs):
        start_s = max(job.arrival_s, heapq.heappop(free_at_s))
        heapq.heappush(free_at_s, start_s + job.duration_s)
        waiting.append((job.arrival_s, start_s))
        running.append((start_s, start_s + job.duration_s))
    borders_s = {time_s for span in [*waiting, *running] for time_s in span if time_s < until_s}
    samples = [LoadSample.of(0.0, domain, IDLE)]
    for time_s in sorted(borders_s):
        count, queued = (
            sum(start_s <= time_s < end_s for start_s, end_s in spans)
            for spans in (running, waiting)
        )
        found = (count * load.gpu_fraction, count * load.memory_fraction, queued)
        if found != samples[-1][2:]:
            samples.append(LoadSample(time_s, domain, *found))
    return samples


def time_mean(samples, field, from_s, until_s):
    """Mean of a field of one domain's samples over a time."""
    ends_s = [later.time_s for later in samples[1:]] + [until_s]
    return sum(
        getattr(sample, field) * max(0.0, end_s - max(sample.time_s, from_s))
        for sample, end_s in zip(samples, ends_s, strict=True)
    ) / (until_s - from_s)


def erlang_c(num_servers, offered):
    """Probability that a job has to wait (A. K. Erlang, 1917)."""
    busy = offered**num_servers / math.factorial(num_servers) / (1 - offered / num_servers)
    others = sum(offered**count / math.factorial(count) for count in range(num_servers))
    return busy / (others + busy)


@given(
    load=st.builds(
        BackgroundLoad,
        arrivals_per_s=st.floats(0.05, 2.0),
        mean_duration_s=st.floats(0.1, 20.0),
        gpu_fraction=st.floats(0.01, 0.2),
        memory_fraction=st.floats(0.0, 0.2),
        most_jobs=st.integers(1, 4),
    ),
    seed=st.integers(0, 2**32),
)
def test_jobs_run_first_come_first_served_on_so_many_slots(load, seed):
    samples = run([load, load], 60.0, seed=seed).samples

    for domain in range(2):
        own = [sample for sample in samples if sample.domain == domain]
        assert own == expected_samples(load, seed, domain, 60.0)


@pytest.mark.parametrize(("most_jobs", "usage"), [(1, 0.5), (3, 0.7), (8, 0.8)])
def test_utilisation_and_queue_length_are_those_of_erlang(most_jobs, usage):
    """Mean jobs at work are the offered load a; mean jobs waiting are C(c, a) rho / (1 - rho)."""
    offered = usage * most_jobs
    share = 1.0 / (most_jobs + 1)
    load = BackgroundLoad(
        arrivals_per_s=offered,
        mean_duration_s=1.0,
        gpu_fraction=share,
        memory_fraction=share / 2,
        most_jobs=most_jobs,
    )
    until_s = 4e4 / offered
    samples = run([load], until_s, seed=1).samples

    waiting = erlang_c(most_jobs, offered) * usage / (1 - usage)
    means = [
        time_mean(samples, field, 0.01 * until_s, until_s)
        for field in ("gpu_utilisation", "memory_occupancy", "queue_length")
    ]
    assert means[0] == pytest.approx(share * offered, rel=0.02)
    assert means[1] == pytest.approx(means[0] / 2)
    assert means[2] == pytest.approx(waiting, rel=0.08)


def test_gaps_and_durations_are_exponential():
    jobs = draw_jobs(LOAD, domain_rng(0, 0))
    drawn = [next(jobs) for _ in range(20_000)]

    gaps_s = np.diff([0.0, *(job.arrival_s for job in drawn)])
    durations_s = np.array([job.duration_s for job in drawn])
    for values, mean in ((gaps_s, 4.0), (durations_s, 8.0)):
        assert values.mean() == pytest.approx(mean, rel=0.03)
        assert values.std() == pytest.approx(mean, rel=0.03)
        assert (values > mean).mean() == pytest.approx(math.exp(-1), abs=0.015)
    assert abs(np.corrcoef(gaps_s, durations_s)[0, 1]) < 0.03


def test_a_seed_repeats_the_course_and_another_does_not():
    first, again = (run([LOAD, LOAD], 500.0, seed=7).samples for _ in range(2))

    assert first == again
    assert first != run([LOAD, LOAD], 500.0, seed=8).samples


def test_domains_do_not_depend_on_each_other():
    """Neither on whether others have jobs nor on how many domains there are."""
    both = run([LOAD, LOAD], 500.0).samples
    own = [sample for sample in both if sample.domain == 1]

    assert [s for s in run([None, LOAD], 500.0).samples if s.domain == 1] == own
    busier = replace(LOAD, arrivals_per_s=2.0)
    assert [s for s in run([busier, LOAD, busier], 500.0).samples if s.domain == 1] == own
    assert own != [sample._replace(domain=1) for sample in both if sample.domain == 0]


def test_a_domain_without_other_jobs_stays_idle():
    background = run([None, LOAD], 500.0)

    assert [sample for sample in background.samples if sample.domain == 0] == [
        LoadSample.of(0.0, 0, IDLE)
    ]
    assert background.loads[0] == IDLE


def test_samples_come_in_order_and_each_changes_something():
    samples = run([LOAD, LOAD], 500.0).samples

    assert all(earlier.time_s <= later.time_s for earlier, later in pairwise(samples))
    for domain in range(2):
        own = [sample for sample in samples if sample.domain == domain]
        assert all(earlier.time_s < later.time_s for earlier, later in pairwise(own))
        assert all(earlier[2:] != later[2:] for earlier, later in pairwise(own))


def test_the_event_of_the_next_change_comes_with_it():
    clock = Clock()
    background = Background(clock, free_world(1), [LOAD], 0)
    for job in (1, 2):
        clock.run(until=background.next_change())
        assert clock.now == background.samples[job].time_s
        assert background.loads == (load_of(background.samples[job]),)


def test_an_iteration_beside_jobs_takes_longer_by_what_they_take():
    """On half of the GPUs 2 s of work take 4 s."""
    world, workload = free_world(2), unit_workload([(1, 1)], num_microbatches=1)

    left = beside_jobs(
        world, (DomainLoad(utilisation=0.5, memory_occupancy=0.25, queue_length=9), IDLE)
    )

    assert simulate(left, workload, plan(0)).makespan_s == 4.0
    assert simulate(left, workload, plan(1)).makespan_s == 2.0
    assert simulate(left, workload, plan(0)).memory[0].capacity_bytes == 1e30 * 0.75
    assert simulate(left, workload, plan(0)).utilisation == 0.25  # of all GPUs, theirs included


@given(topology=topologies())
def test_without_jobs_the_world_is_what_it_was(topology):
    waiting_only = DomainLoad(queue_length=3)

    assert beside_jobs(topology, (waiting_only,) * topology.num_domains) is topology


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrivals_per_s": 0.0}, "arrivals_per_s must be positive and finite, got 0.0"),
        ({"mean_duration_s": math.inf}, "mean_duration_s must be positive and finite, got inf"),
        ({"gpu_fraction": 0.0}, "gpu_fraction must be above 0 and at most 1, got 0.0"),
        ({"memory_fraction": -0.5}, "memory_fraction must be finite and not negative, got -0.5"),
        ({"most_jobs": 0}, "most_jobs must be a whole number from 1 .*, got 0"),
        ({"most_jobs": 4}, "gpu_fraction times most_jobs must be below 1, .* got 0.25 times 4"),
        ({"memory_fraction": 0.5}, "memory_fraction times most_jobs .* got 0.5 times 3"),
    ],
)
def test_a_load_out_of_range_is_refused(changes, message):
    with pytest.raises(ValueError, match=f"background load: {message}"):
        replace(LOAD, **changes)


def test_loads_must_be_one_a_domain():
    with pytest.raises(ValueError, match="loads must hold one entry for each of 2 domains, got 1"):
        Background(Clock(), free_world(2), [LOAD], 0)


def test_recorded_loads_of_two_domains_are_replayed():
    recorded = run((LOAD, None), 200.0).samples
    changes = {s.time_s: load_of(s) for s in recorded if s.domain == 0 and s.time_s > 0}
    replayed = run((ReplayedLoad(changes=tuple(changes.items())), None), 200.0).samples

    last = {(s.time_s, s.domain): s for s in recorded}
    assert replayed == list(last.values())
    with pytest.raises(ValueError, match=r"times must rise, got 1\.0 after 1\.0"):
        ReplayedLoad(changes=((1.0, IDLE), (1.0, IDLE)))
