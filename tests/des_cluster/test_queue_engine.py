"""Engine of the cluster: hand-computed queues, waits in closed form, conservation of GPU time."""

from heapq import heapreplace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from queues import finishes, policy, queued, ran

from agents.cluster.admission import LoadThreshold
from agents.cluster.key_orderings import Fifo, LeastAttained, ShortestRemaining
from agents.cluster.preempting import WorstFirst
from des.cluster.node_set import NodeChange
from des.dynamics import LinkState, MarkovModulated
from des.plan.replacement import Replacement

LAS = policy(LeastAttained(quantum_s=100.0), preempting=WorstFirst())
SRTF = policy(ShortestRemaining(quantum_s=0.0), preempting=WorstFirst())
ROWS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(1, 4), st.integers(1, 300)), min_size=1, max_size=12
)


def test_the_first_job_that_does_not_fit_stops_those_behind_it():
    history = ran(queued((0, 2, 100), (1, 4, 10), (2, 1, 10)))

    assert finishes(history) == {0: 100, 1: 110, 2: 120}


def test_backfill_lets_pass_who_does_not_delay_the_first():
    """Job 1 waits for job 0 until 100; job 2 ends by then, job 3 would not."""
    rows = queued((0, 2, 100), (1, 4, 10), (2, 1, 98), (2, 1, 99))
    history = ran(rows, policy(Fifo(backfills=True)))

    assert finishes(history) == {0: 100, 1: 110, 2: 100, 3: 209}


def test_least_attained_gives_way_at_the_quantum():
    history = ran(queued((0, 4, 250), (10, 4, 50)), LAS)

    assert finishes(history) == {1: 150, 0: 300}
    assert history.num_suspensions == 1


@pytest.mark.parametrize(("quantum_s", "restart_s"), [(5.0, 10.0), (5.7, 11.4), (0.3, 0.0)])
def test_turns_shorter_than_a_restart_or_no_whole_number_end(quantum_s, restart_s):
    """A launch does some service before it gives way, and the next multiple is a later one."""
    order = policy(LeastAttained(quantum_s=quantum_s), preempting=WorstFirst())
    restarts = Replacement(restart_s=restart_s)
    history = ran(queued((0, 1, 20), (0, 1, 20)), order, gpus=1, replacement=restarts)

    spent_s = sum(job.suspensions for job in history.jobs) * restart_s
    assert all(job.suspensions > 0 for job in history.jobs)
    assert history.end_s == pytest.approx(40 + spent_s)


def test_a_job_gives_way_after_its_restart():
    """Job 0 runs to 5 s, job 1 to 15; at 25 job 0 has only restarted, so it runs to 30, 1 to 45."""
    order = policy(LeastAttained(quantum_s=5.0), preempting=WorstFirst())
    restarts = Replacement(restart_s=10.0)
    history = ran(queued((0, 1, 11), (0, 1, 20)), order, gpus=1, replacement=restarts)

    assert finishes(history) == {0: 56, 1: 71}
    assert history.num_suspensions == 4


@pytest.mark.parametrize("quantum_s", [1e-15, 9e-4])
def test_a_quantum_too_short_is_refused(quantum_s):
    with pytest.raises(ValueError, match=r"quantum_s must be 0 .* or at least 0.001 s"):
        ran(queued((0, 1, 1)), policy(LeastAttained(quantum_s=quantum_s)))


def test_a_restart_is_paid_after_a_suspension_alone():
    world = {"replacement": Replacement(restart_s=7.0)}
    history = ran(queued((0, 4, 250), (10, 4, 50)), LAS, **world)

    assert finishes(history) == {1: 150, 0: 307}
    assert history.gpu_seconds.restart == 4 * 7


def test_shortest_remaining_takes_only_the_gpus_that_it_needs():
    history = ran(queued((0, 2, 100), (0, 2, 90), (5, 2, 10)), SRTF)

    assert finishes(history) == {2: 15, 1: 90, 0: 110}
    assert history.num_suspensions == 1


def test_nothing_is_suspended_for_a_job_that_would_not_fit():
    """Job 2 needs four GPUs, of which job 0, which is ahead of it, keeps two."""
    history = ran(queued((0, 2, 30), (0, 2, 100), (5, 4, 50)), SRTF)

    assert finishes(history) == {0: 30, 2: 80, 1: 150}


@settings(deadline=None, max_examples=30)
@given(rows=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 60)), min_size=1, max_size=20))
def test_waits_are_those_of_kiefer_and_wolfowitz(rows):
    """First come, first served on c servers: the next job takes the server that is free first."""
    rows = sorted(rows)
    servers, expected = [0.0] * 4, {}
    for number, (arrival_s, service_s) in enumerate(rows):
        expected[number] = max(arrival_s, servers[0]) + service_s
        heapreplace(servers, expected[number])

    assert finishes(ran(queued(*((at, 1, long) for at, long in rows)))) == expected


def test_mean_wait_is_that_of_erlang():
    """M/M/2 at load 0.5 waits (1/3) of a mean service; 12,000 jobs."""
    rng = np.random.default_rng(3)
    arrivals = np.cumsum(rng.exponential(1.0, 12_000))
    jobs = queued(*zip(arrivals, [1] * 12_000, rng.exponential(1.0, 12_000), strict=True))
    history = ran(jobs, gpus=2)

    assert np.mean([job.wait_s for job in history.jobs]) == pytest.approx(1 / 3, rel=0.08)


@settings(deadline=None, max_examples=25)
@given(rows=ROWS, order=st.sampled_from([LAS, SRTF, policy(), policy(Fifo(backfills=True))]))
def test_gpu_seconds_are_conserved(rows, order):
    """Held, free and failed GPU seconds are all there are; useful ones are what jobs needed."""
    rows = sorted(rows)
    changes = tuple(
        NodeChange(time_s=at, node=1, kind=kind)
        for at, kind in ((50, "drain"), (120, "fail"), (130, "join"), (200, "leave"), (260, "join"))
    )
    world = {"changes": changes, "replacement": Replacement(restart_s=5.0)}
    history = ran(queued(*rows), order, nodes=2, **world)
    seconds = history.gpu_seconds

    assert len(history.jobs) == len(rows)
    assert seconds.present == pytest.approx(seconds.held + seconds.free)
    assert seconds.useful == pytest.approx(sum(gpus * long for _, gpus, long in rows))
    assert all(job.jct_s >= job.service_s - 1e-9 for job in history.jobs)


@pytest.mark.parametrize("threshold", [1.0, 1.2, 2.5])
def test_first_come_first_served_does_not_mind_thresholds(threshold):
    """With one GPU a job, a job that waits outside would wait inside."""
    rng = np.random.default_rng(0)
    arrivals = np.sort(rng.integers(0, 500, 40))
    jobs = queued(*((int(at), 1, int(rng.integers(1, 90))) for at in arrivals))
    limited = policy(admission=LoadThreshold(threshold=threshold))

    assert finishes(ran(jobs, limited)) == finishes(ran(jobs))


def test_a_failure_sets_a_job_back_to_its_checkpoint_and_a_leave_does_not():
    def end_s(kind, **world):
        changes = (
            NodeChange(time_s=95, node=0, kind=kind),
            NodeChange(time_s=100, node=0, kind="join"),
        )
        history = ran(queued((0, 4, 200)), changes=changes, **world)
        return finishes(history)[0], history.gpu_seconds.lost, history.num_failures

    assert end_s("fail") == (300, 4 * 95, 1)
    assert end_s("fail", checkpoint_every_s=30.0) == (210, 4 * 5, 1)
    assert end_s("leave") == (205, 0, 0)


def test_a_draining_node_keeps_its_jobs_and_takes_no_more():
    changes = (NodeChange(time_s=10, node=0, kind="drain"),)
    history = ran(queued((0, 4, 100), (20, 4, 10), (20, 4, 10)), nodes=2, changes=changes)

    assert finishes(history) == {0: 100, 1: 30, 2: 40}


def test_nodes_fail_and_are_repaired_by_a_law():
    """A node that is up half of the time does half the work; with checkpoints none is lost."""
    law = MarkovModulated(
        states=(
            LinkState(name="up", bandwidth_factor=1, mean_dwell_s=10, followed_by=(("down", 1),)),
            LinkState(name="down", bandwidth_factor=0, mean_dwell_s=10, followed_by=(("up", 1),)),
        ),
        starts_in="up",
    )
    jobs = queued((0, 1, 20_000))
    history = ran(jobs, failures=law, gpus=1, checkpoint_every_s=1e-3)

    assert history.jobs[0].finish_s == pytest.approx(40_000, rel=0.1)
    assert history == ran(jobs, failures=law, gpus=1, checkpoint_every_s=1e-3)
    assert history != ran(jobs, failures=law, gpus=1, checkpoint_every_s=1e-3, seed=1)


def test_rounds_decide_at_their_borders_and_jobs_end_when_they_are_done():
    history = ran(queued((10, 4, 50), (20, 4, 10)), round_s=100.0)

    assert finishes(history) == {0: 150, 1: 210}


def test_tracked_jobs_end_the_run():
    jobs = queued(*((10 * number, 1, 15) for number in range(100)))
    history = ran(jobs, tracked_ids=(3, 5))

    assert finishes(history) == {3: 45, 4: 55, 5: 65}
    assert history.end_s == 65


def test_a_window_that_does_not_end_stops_and_tells_what_is_unfinished():
    history = ran(queued((0, 1, 15), (0, 1, 1000)), until_s=100.0)

    assert history.unfinished == (1,)
    assert history.end_s == 100
    assert history.gpu_seconds.held == 15 + 100
