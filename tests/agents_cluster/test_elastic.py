"""Elastic jobs: widths by remaining time and by goodput, and the fit of speeds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from queues import finishes, policy, queued, ran

from agents.cluster.elastic import Optimus, Pollux, greedy_widths
from agents.cluster.speed_fit import fit_speed_curve
from des.cluster.live_job import LiveJob
from des.cluster.queued_job import SpeedCurve
from des.plan.replacement import Replacement

LINEAR = SpeedCurve(compute=1.0, most_gpus=8)


def test_a_lone_job_gets_all_that_speeds_it_up():
    """100 s on one GPU take 25 s on four; with overhead 1 they take 100 (1/4 + 1) / 2."""
    elastic = policy(Optimus(quantum_s=10.0))
    overhead = SpeedCurve(compute=1.0, overhead=1.0, most_gpus=8)

    assert finishes(ran(queued((0, 1, 100), curve=LINEAR), elastic)) == {0: pytest.approx(25)}
    assert finishes(ran(queued((0, 1, 100), curve=overhead), elastic)) == {0: pytest.approx(62.5)}


def test_gpus_go_where_remaining_time_falls_most():
    """Of two linear jobs the longer one gets three of four GPUs."""
    jobs = [LiveJob(job) for job in queued((0, 1, 900), (0, 1, 100), curve=LINEAR)]
    ordering = Optimus()
    widths = greedy_widths(jobs, 4, lambda job, width: job.job.service_s / (width * (width + 1)))

    assert widths == [3, 1]
    assert ordering.changes


def test_goodput_stops_where_a_larger_batch_does_not_help():
    """With a noise scale of 0 twice the batch is worth nothing, so one GPU is enough."""
    useless = SpeedCurve(compute=1.0, noise_scale=0.0, most_gpus=8)
    history = ran(queued((0, 1, 100), curve=useless), policy(Pollux(quantum_s=10.0)))

    assert finishes(history) == {0: 100}
    assert history.gpu_seconds.held == 100


def test_a_change_of_width_costs_a_restart():
    """Job 0 has four GPUs until job 1 comes, then two: 40 of 160 GPU s by 10, a restart of 3 s."""
    world = {"replacement": Replacement(restart_s=3.0)}
    two = SpeedCurve(compute=1.0, most_gpus=4)
    jobs = queued((0, 1, 160), (5, 1, 160), curve=two)
    history = ran(jobs, policy(Optimus(quantum_s=10.0)), **world)

    assert history.num_suspensions >= 2
    assert history.gpu_seconds.restart > 0
    assert history.gpu_seconds.present == pytest.approx(
        history.gpu_seconds.held + history.gpu_seconds.free
    )


@given(compute=st.floats(0.1, 10), overhead=st.floats(0.0, 5), communication=st.floats(0.0, 1))
def test_exact_times_give_the_curve_back(compute, overhead, communication):
    widths = (1, 2, 4, 8)
    times = [compute / n + overhead + communication * n for n in widths]
    fitted = fit_speed_curve(widths, times, like=SpeedCurve())

    for width in (3, 6, 16):
        expected = compute / width + overhead + communication * width
        time = fitted.compute / width + fitted.overhead + fitted.communication * width
        assert time == pytest.approx(expected, rel=1e-6)


def test_times_without_widths_are_refused():
    with pytest.raises(ValueError, match="iteration_s must be one time for each number of GPUs"):
        fit_speed_curve([1, 2], [1.0], like=SpeedCurve())
