"""Changes of plan within a training run: what they cost, and what the planner sees."""

from dataclasses import replace

import numpy as np
import pytest
from run_cases import (
    ALL_IN_A,
    FOUR_LAYERS,
    JOBS,
    LAST_IN_B,
    LAWS,
    PAIR,
    alternate,
    loads_at,
    moving,
)
from strategies import plan, unit_domain, unit_workload

from des import STEADY, InfeasiblePlacementError
from des.dynamics import LinkSeries, Replay
from des.simulation.migration import migration_s
from des.training.training_run import run_training
from des.training.training_settings import TrainingRun


def test_a_change_of_plan_by_hand():
    """Layer 3 goes to B at 24 s: 2.5 s + 1.5 s, then 8.75 s each; back at 45.5 s in 4.25 + 1.5."""
    run = TrainingRun(num_epochs=3, epoch_s=20.0, restart_s=1.5)
    planner = alternate(ALL_IN_A, LAST_IN_B, ALL_IN_A)

    history = run_training(PAIR, FOUR_LAYERS, planner, run)

    assert [row.start_s for row in history.iterations] == [
        *(0.0, 8.0, 16.0),
        *(28.0, 36.75),
        *(51.25, 59.25),
    ]
    assert [
        (row.start_s, row.plan, row.moved_bytes, row.migration_s, row.num_iterations)
        for row in history.epochs
    ] == [
        (0.0, ALL_IN_A, 0.0, 0.0, 3),
        (24.0, LAST_IN_B, 16.0, 4.0, 2),
        (45.5, ALL_IN_A, 16.0, 5.75, 2),
    ]
    assert history.total_s == 67.25
    assert history.training_s == 57.5
    assert (history.migration_s, history.moved_bytes, history.idle_s) == (9.75, 32.0, 0.0)


def test_state_that_is_everywhere_costs_the_restart_only():
    run = TrainingRun(num_epochs=2, epoch_s=20.0, restart_s=1.5, pays_bytes=False)

    history = run_training(PAIR, FOUR_LAYERS, alternate(ALL_IN_A, LAST_IN_B), run)

    assert history.epochs[1].migration_s == 1.5
    assert history.moved_bytes == 0


def test_after_a_change_of_plan_at_least_one_iteration_is_done():
    """Each restart outlasts the epochs, which thus do not keep the training from going on."""
    run = TrainingRun(num_iterations=3, epoch_s=4.0, restart_s=50.0, pays_bytes=False)

    history = run_training(PAIR, FOUR_LAYERS, alternate(ALL_IN_A, LAST_IN_B), run)

    assert [row.num_iterations for row in history.epochs] == [1, 1, 1]
    assert [row.start_s for row in history.iterations] == [0.0, 58.0, 116.75]


def test_a_migration_takes_the_network_as_it_is_at_the_border():
    law = LAWS[0]
    run = TrainingRun(num_epochs=2, epoch_s=20.0, seed=5)
    slow = replace(PAIR, dynamics=law)

    history = run_training(slow, FOUR_LAYERS, alternate(ALL_IN_A, LAST_IN_B), run)

    at_border = slow.draw_epoch(np.random.default_rng([5, 1])).later(24.0)
    expected_s = migration_s(at_border, FOUR_LAYERS, ALL_IN_A, LAST_IN_B)
    assert history.epochs[1].migration_s == expected_s
    assert history.iterations[3].start_s == 24.0 + expected_s


def test_the_planner_sees_the_links_as_they_stand_without_those_that_are_down():
    law = Replay(
        name="trace",
        series=tuple(
            LinkSeries(
                source=source,
                target=target,
                times_s=(0.0, 7.0, 15.0),
                bandwidths_bytes_per_s=bandwidths,
                latencies_s=(0.5, 0.25, 0.125),
            )
            for source, target, bandwidths in (("A", "B", (8.0, 2.0, 0.0)), ("B", "A", (4.0,) * 3))
        ),
        holds_last=True,
    )
    views = []

    def planner(view):
        views.append(view)
        return ALL_IN_A

    run = TrainingRun(num_epochs=3, epoch_s=8.0, background=(None, JOBS))
    history = run_training(moving(PAIR, law), FOUR_LAYERS, planner, run)

    assert [(view.epoch, view.time_s) for view in views] == [(0, 0.0), (1, 8.0), (2, 16.0)]
    assert [view.plan for view in views] == [None, ALL_IN_A, ALL_IN_A]
    assert [
        [(link.source, link.bandwidth_bytes_per_s, link.latency_s) for link in view.topology.links]
        for view in views
    ] == [
        [("A", 8.0, 0.5), ("B", 4.0, 0.5)],
        [("A", 2.0, 0.25), ("B", 4.0, 0.25)],
        [("B", 4.0, 0.125)],
    ]
    assert all(view.topology.movement is None for view in views)
    assert all(view.topology.dynamics == STEADY for view in views)
    assert [view.loads for view in views] == [loads_at(history, view.time_s) for view in views]
    seen = [sample for view in views for sample in view.load_changes]
    assert tuple(seen) == history.loads[: len(seen)]
    assert all(sample.time_s <= 16.0 for sample in seen)


def test_a_plan_that_never_fits_is_refused_at_its_border():
    small = replace(PAIR, domains=(unit_domain("A", memory_bytes=99.0), unit_domain("B")))
    run = TrainingRun(num_epochs=3, epoch_s=20.0)
    big = unit_workload([(1, 1)] * 8, num_microbatches=1)
    half, whole = plan(0, 0, 0, 0, 1, 1, 1, 1), plan(0, 0, 0, 0, 0, 0, 0, 0)

    with pytest.raises(InfeasiblePlacementError, match=r"domain A must hold at most 0\.0 GB"):
        run_training(small, big, alternate(half, whole), run)


def test_a_plan_of_another_model_is_refused():
    run = TrainingRun(num_epochs=2, epoch_s=20.0)

    with pytest.raises(ValueError, match="each of the 4 layers of unit, got 2"):
        run_training(PAIR, FOUR_LAYERS, alternate(ALL_IN_A, plan(0, 1)), run)
