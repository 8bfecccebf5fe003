"""Laws of every training run, whatever its world, job and planner."""

import math
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from run_cases import SIMPLE_SCHEDULES, alternate, with_room
from strategies import cases, corrections

from des import STEADY, Placement, simulate
from des.program.moves import moved_bytes
from des.training.background import BackgroundLoad
from des.training.training_run import run_training
from des.training.training_settings import TrainingRun


@settings(max_examples=examples(40))
@given(
    case=cases(),
    schedule=st.sampled_from(SIMPLE_SCHEDULES),
    fixed=corrections(),
    num_iterations=st.integers(1, 5),
)
def test_where_nothing_moves_a_run_is_so_many_simulations(case, schedule, fixed, num_iterations):
    topology, workload, chosen = case
    chosen = replace(chosen, schedule=schedule)
    topology = replace(with_room(topology), dynamics=STEADY)

    history = run_training(
        topology, workload, chosen, TrainingRun(num_iterations=num_iterations), fixed
    )

    result = simulate(topology, workload, chosen, fixed)
    ends_s = list(accumulate([result.makespan_s] * num_iterations))
    assert history.total_s == ends_s[-1]
    assert [row.start_s for row in history.iterations] == [0.0, *ends_s[:-1]]
    for number, row in enumerate(history.iterations):
        assert row.iteration == number
        assert row.duration_s == result.makespan_s
        assert row.exposed_exchange_s == result.exposed_exchange_s
        assert row.num_bytes == result.communication_cost_bytes
        assert row.utilisation == result.utilisation
    assert history.migration_s == history.idle_s == history.moved_bytes == 0


@given(epoch_s=st.floats(1e-3, 1e3), epoch=st.integers(0, 10**6))
def test_a_border_belongs_to_the_epoch_that_it_opens(epoch_s, epoch):
    run = TrainingRun(num_iterations=1, epoch_s=epoch_s)

    assert run.epoch_at(epoch * epoch_s) == epoch
    assert run.epoch_at(math.nextafter((epoch + 1) * epoch_s, 0.0)) == epoch


@st.composite
def runs(draw):
    """A run of a few epochs with jobs, moving links and a planner that changes its mind."""
    topology, workload, one = draw(cases(min_domains=2))
    one = replace(one, schedule=draw(st.sampled_from(SIMPLE_SCHEDULES)))
    other = draw(st.permutations(one.placement.domain_of_layer))
    plans = (one, replace(one, placement=Placement(domain_of_layer=tuple(other))))
    iteration_s = max(
        simulate(with_room(topology).at_start(), workload, chosen).makespan_s for chosen in plans
    )
    load = BackgroundLoad(
        arrivals_per_s=1.0 / iteration_s,
        mean_duration_s=2.0 * iteration_s,
        gpu_fraction=0.2,
        memory_fraction=0.0,
        most_jobs=4,
    )
    run = TrainingRun(
        num_epochs=3,
        epoch_s=draw(st.floats(0.3, 4.0)) * iteration_s,
        seed=draw(st.integers(0, 2**32)),
        background=draw(st.sampled_from([(), (load,) * topology.num_domains])),
        restart_s=draw(st.sampled_from([0.0, 0.7])) * iteration_s,
        pays_bytes=draw(st.booleans()),
    )
    return with_room(topology), workload, plans, run


@settings(max_examples=examples(40))
@given(case=runs())
def test_iterations_and_changes_of_plan_add_up_to_the_time_of_the_run(case):
    topology, workload, plans, run = case
    history = run_training(topology, workload, alternate(*plans), run)

    parts_s = history.training_s + history.migration_s + history.idle_s
    assert parts_s == pytest.approx(history.total_s, rel=1e-9)
    for earlier, later in pairwise(history.iterations):
        gap_s = 0.0
        if later.epoch > earlier.epoch:
            (epoch,) = (row for row in history.epochs if row.epoch == later.epoch)
            gap_s = epoch.migration_s + epoch.drain_s
        expected_s = earlier.start_s + earlier.duration_s + gap_s
        assert later.start_s == pytest.approx(expected_s, rel=1e-9)
    assert sum(row.num_iterations for row in history.epochs) == len(history.iterations)
    for earlier, later in pairwise(history.epochs):
        expected = sum(moved_bytes(workload, earlier.plan, later.plan).values())
        assert later.moved_bytes == (expected if run.pays_bytes else 0.0)
    assert all(0 < row.utilisation <= 1 for row in history.iterations)


@settings(max_examples=examples(10))
@given(case=runs())
def test_a_run_repeated_is_the_same(case):
    topology, workload, plans, run = case

    first, again = (run_training(topology, workload, alternate(*plans), run) for _ in range(2))

    assert first == again
