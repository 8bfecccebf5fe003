"""A training run is its iterations one after another, plus what waiting and new plans cost."""

import math
from dataclasses import replace

import numpy as np
import pytest
from run_cases import ALL_IN_A, FOUR_LAYERS, JOBS, LAST_IN_B, LAWS, PAIR, alternate, moving
from strategies import plan, unit_workload, world

from des import UniformLaw, simulate
from des.dynamics import LinkSeries, Product, Replay
from des.dynamics.link_course import StarvationError
from des.training.training_run import run_training
from des.training.training_settings import TrainingRun
from des.world.transport import Transport


def test_a_hundred_thousand_equal_iterations_are_simulated_once():
    """Else this takes a minute; every time is a binary fraction, so the sum is exact."""
    history = run_training(PAIR, FOUR_LAYERS, LAST_IN_B, TrainingRun(num_iterations=100_000))

    assert history.total_s == 100_000 * 8.75
    assert history._repr_html_().startswith("<h4>100000 iterations in 8.75e+05 s</h4>")
    assert len(history.to_frame("iterations")) == 100_000


@pytest.mark.parametrize("law", [*LAWS, Product(laws=(LAWS[1], LAWS[4]))])
@pytest.mark.parametrize("sharing", ["fifo", "fair", "none"])
def test_every_iteration_is_simulated_on_the_network_as_it_is_then(law, sharing):
    """Those that are remembered are those that would have been simulated, to the last bit."""
    law_world = replace(
        world("AB", {"AB": (3.0, 0.3), "BA": (5.0, 0.7)}),
        dynamics=law,
        transport=Transport(sharing=sharing),
    )
    workload = unit_workload([(1, 1)] * 2, num_microbatches=3, message_bytes=4.1)
    chosen = plan(0, 1, schedule="gpipe")

    history = run_training(law_world, workload, chosen, TrainingRun(num_iterations=60, seed=11))

    drawn = law_world.draw_epoch(np.random.default_rng([11, 1]))
    for row in history.iterations:
        result = simulate(drawn.later(row.start_s), workload, chosen)
        assert row.duration_s == result.makespan_s
        assert row.num_bytes == result.communication_cost_bytes
    assert history.total_s == history.iterations[-1].start_s + history.iterations[-1].duration_s


def test_a_movement_that_is_given_is_followed_from_its_start():
    law, workload = LAWS[0], unit_workload([(1, 1)] * 2, num_microbatches=3, message_bytes=4.1)
    given_world = moving(PAIR, law, start_s=77.7)

    history = run_training(given_world, workload, plan(0, 1), TrainingRun(num_iterations=9))

    for row in history.iterations:
        result = simulate(given_world.later(row.start_s), workload, plan(0, 1))
        assert row.duration_s == result.makespan_s


def test_links_of_the_other_kind_are_drawn_anew_for_each_epoch():
    law = UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5)
    workload = unit_workload([(1, 1)] * 2, num_microbatches=2, message_bytes=4.0)
    run = TrainingRun(num_epochs=5, epoch_s=20.0, seed=4)

    history = run_training(replace(PAIR, dynamics=law), workload, plan(0, 1), run)

    assert [row.epoch for row in history.epochs] == [0, 1, 2, 3, 4]
    for row in history.iterations:
        rng = np.random.default_rng([4, 1 + row.epoch])
        drawn = replace(PAIR, dynamics=law).draw_epoch(rng)
        assert row.duration_s == simulate(drawn, workload, plan(0, 1)).makespan_s
    assert len({row.duration_s for row in history.iterations}) == 5


# Epochs.


def test_an_epoch_starts_with_the_iteration_after_its_border():
    """8 s each: the borders at 20 s and 40 s come at 24 s and 40 s."""
    history = run_training(PAIR, FOUR_LAYERS, ALL_IN_A, TrainingRun(num_epochs=3, epoch_s=20.0))

    assert [(row.epoch, row.start_s, row.num_iterations) for row in history.epochs] == [
        (0, 0.0, 3),
        (1, 24.0, 2),
        (2, 40.0, 3),
    ]
    assert [row.epoch for row in history.iterations] == [0, 0, 0, 1, 1, 2, 2, 2]
    assert history.total_s == 64.0


def test_borders_that_fall_into_one_iteration_come_together():
    """8 s in epochs of 3 s: 8 s lie in the epoch from 6 s, 16 s in that from 15 s, 24 s after."""
    history = run_training(PAIR, FOUR_LAYERS, ALL_IN_A, TrainingRun(num_epochs=6, epoch_s=3.0))

    assert [(row.epoch, row.start_s) for row in history.epochs] == [
        (0, 0.0),
        (2, 8.0),
        (5, 16.0),
    ]
    assert history.total_s == 24.0


# Errors.


def test_a_link_that_is_down_for_ever_is_an_error_with_the_time_of_the_run():
    """The second iteration, from 4.5 s on, sends its gradient at 8.25 s; B->A is down from 6 s."""
    series = (
        LinkSeries(
            source=source,
            target=target,
            times_s=(0.0, 6.0),
            bandwidths_bytes_per_s=(8.0, last),
            latencies_s=(0.25, 0.25),
        )
        for source, target, last in (("A", "B", 8.0), ("B", "A", 0.0))
    )
    law = Replay(name="trace", series=tuple(series), holds_last=True)
    workload = unit_workload([(1, 1)] * 2, num_microbatches=1, message_bytes=1.0)

    with pytest.raises(StarvationError) as caught:
        run_training(moving(PAIR, law), workload, plan(0, 1), TrainingRun(num_iterations=9))

    assert str(caught.value) == (
        "training run: from 4.75 s on, seconds counted from there: "
        "link B->A: is down for ever from 3.375 s on, with 1 bytes to send"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "one of num_iterations and num_epochs must be given, got None and None"),
        ({"num_iterations": 1, "num_epochs": 1}, "must be given, got 1 and 1"),
        ({"num_iterations": 0}, "num_iterations must be a whole number from 1 .*, got 0"),
        ({"num_epochs": 0, "epoch_s": 1.0}, "num_epochs must be a whole number .*, got 0"),
        ({"num_epochs": 1}, "epoch_s must be positive and finite, got inf"),
        ({"num_iterations": 1, "epoch_s": 0.0}, "epoch_s must be positive and finite, got 0.0"),
        ({"num_iterations": 1, "epoch_s": math.nan}, "epoch_s must be positive .*, got nan"),
        ({"num_iterations": 1, "seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"num_iterations": 1, "seed": 1.5}, "seed must be a whole number of at least 0, got 1.5"),
        ({"num_iterations": 1, "restart_s": -1.0}, "restart_s must be .* negative, got -1.0"),
    ],
)
def test_a_run_out_of_range_is_refused(fields, message):
    with pytest.raises(ValueError, match=f"training run: .*{message}"):
        TrainingRun(**fields)


# What comes out.


def test_the_series_are_frames_and_the_watcher_sees_every_iteration():
    seen = []
    run = TrainingRun(num_epochs=2, epoch_s=20.0, restart_s=1.5, background=(JOBS, None), seed=6)

    history = run_training(
        PAIR, FOUR_LAYERS, alternate(ALL_IN_A, LAST_IN_B), run, watch=seen.append
    )

    assert tuple(seen) == history.iterations
    iterations = history.to_frame("iterations")
    assert [tuple(row) for row in iterations.itertuples(index=False)] == list(history.iterations)
    epochs = history.to_frame("epochs")
    assert list(epochs["placement"]) == ["0*4", "0*3,1*1"]
    assert list(epochs["schedule"]) == ["1f1b", "1f1b"]
    assert list(epochs["moved_bytes"]) == [0.0, 16.0]
    loads = history.to_frame("loads")
    assert list(loads["time_s"]) == [sample.time_s for sample in history.loads]
    assert set(loads["domain"]) == {"A", "B"}
    assert list(loads.columns[2:]) == ["gpu_utilisation", "memory_occupancy", "queue_length"]
    with pytest.raises(ValueError, match=r"series must be .*; got 'links'"):
        history.to_frame("links")
