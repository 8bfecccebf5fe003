"""A training run beside other jobs, which take GPUs and memory from it."""

from dataclasses import replace

import pytest
from run_cases import ALL_IN_A, FOUR_LAYERS, JOBS, LAST_IN_B, LAWS, PAIR, loads_at
from strategies import plan, unit_domain, unit_workload

from des import InfeasiblePlacementError, simulate
from des.simulation.migration import migration_s
from des.training.background import BackgroundLoad, beside_jobs
from des.training.training_run import LONGEST_STALL_S, run_training
from des.training.training_settings import TrainingRun


def test_an_iteration_runs_on_what_the_jobs_at_its_start_leave():
    run = TrainingRun(num_iterations=200, seed=2, background=(JOBS, JOBS))
    history = run_training(PAIR, FOUR_LAYERS, LAST_IN_B, run)

    for row in history.iterations:
        left = beside_jobs(PAIR, loads_at(history, row.start_s))
        assert row.duration_s == simulate(left, FOUR_LAYERS, LAST_IN_B).makespan_s
    assert len({row.duration_s for row in history.iterations}) > 4


@pytest.mark.parametrize("schedule", ["1f1b", "greedy"])
def test_an_iteration_that_lacks_memory_waits_until_jobs_have_left_it(schedule):
    """A needs half of its memory, so it waits wherever all 3 jobs of 0.2 run.

    Of what they leave then the model state alone takes more, so that no greedy order can be made.
    """
    need_bytes = 4 * 16.0 + 4.0
    pair = replace(PAIR, domains=(unit_domain("A", memory_bytes=need_bytes / 0.5), PAIR.domains[1]))
    run = TrainingRun(num_iterations=300, epoch_s=500.0, seed=2, background=(JOBS, None))

    history = run_training(pair, FOUR_LAYERS, replace(ALL_IN_A, schedule=schedule), run)

    stalled_s, expected_start_s = 0.0, 0.0
    for row in history.iterations:
        if loads_at(history, expected_start_s)[0].memory_occupancy > 0.5:
            relief_s = min(
                sample.time_s
                for sample in history.loads
                if sample.time_s > expected_start_s and sample.memory_occupancy < 0.5
            )
            stalled_s += relief_s - expected_start_s
            expected_start_s = relief_s
        assert row.start_s == expected_start_s
        expected_start_s += row.duration_s
    assert stalled_s > 100.0
    assert history.idle_s == pytest.approx(stalled_s)
    assert history.total_s == pytest.approx(history.training_s + stalled_s)


def test_a_planner_is_asked_while_the_training_stalls_and_can_end_that():
    """Once A is full the next decision moves all to B, where there is room."""
    full = replace(JOBS, arrivals_per_s=1.0, mean_duration_s=1e5, memory_fraction=0.3)
    pair = replace(PAIR, domains=(unit_domain("A", memory_bytes=100.0), PAIR.domains[1]))
    in_b = plan(1, 1, 1, 1)

    def planner(view):
        return in_b if view.loads[0].memory_occupancy > 0.5 else ALL_IN_A

    run = TrainingRun(num_iterations=10, epoch_s=60.0, background=(full, None))
    history = run_training(pair, FOUR_LAYERS, planner, run)

    assert [row.plan for row in history.epochs] == [ALL_IN_A, in_b, in_b]
    first, second, _ = history.epochs
    assert first.stall_s == 60.0 - 8.0 * first.num_iterations - sum(
        row.duration_s - 8.0 for row in history.iterations[: first.num_iterations]
    )
    assert second.start_s == 60.0
    assert second.migration_s == migration_s(pair, FOUR_LAYERS, ALL_IN_A, in_b)


def test_a_plan_that_finds_no_memory_for_long_is_an_error():
    """Every job is followed by the next."""
    full = BackgroundLoad(
        arrivals_per_s=1e-4, mean_duration_s=1e5, gpu_fraction=0.5, memory_fraction=0.5, most_jobs=1
    )
    pair = replace(PAIR, domains=(unit_domain("A", memory_bytes=100.0), PAIR.domains[1]))
    run = TrainingRun(num_iterations=10_000, background=(full, None))

    with pytest.raises(InfeasiblePlacementError, match="training run: plan has stalled") as caught:
        run_training(pair, FOUR_LAYERS, ALL_IN_A, run)

    assert "domain A must hold at most 0.0 GB" in str(caught.value)
    assert float(str(caught.value).split("stalled for ")[1].split()[0]) >= LONGEST_STALL_S


def test_jobs_and_links_follow_the_seed():
    run = TrainingRun(num_iterations=30, seed=0, background=(JOBS, JOBS))
    workload = unit_workload([(1, 1)] * 2, num_microbatches=3, message_bytes=4.1)
    topology = replace(PAIR, dynamics=LAWS[0])

    first = run_training(topology, workload, plan(0, 1), run)
    other = run_training(topology, workload, plan(0, 1), replace(run, seed=1))

    assert first.loads != other.loads
    assert first.iterations[0].duration_s != other.iterations[0].duration_s


def test_a_background_of_another_world_is_refused():
    run = TrainingRun(num_iterations=1, background=(None,))

    with pytest.raises(ValueError, match="loads must hold one entry for each of 2 domains, got 1"):
        run_training(PAIR, FOUR_LAYERS, ALL_IN_A, run)
