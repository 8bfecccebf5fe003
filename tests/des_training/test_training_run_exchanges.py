"""Exchanges between replicas every several steps of a training run, waited for or put off."""

from dataclasses import replace

import pytest
from run_cases import alternate
from strategies import unit_workload, world

from des import Placement, Plan, simulate
from des.plan.buckets import buckets_behind
from des.plan.synchronisation import DiLoCo, StreamingDiLoCo
from des.training.step_figures import bytes_behind
from des.training.training_run import run_training
from des.training.training_settings import TrainingRun

SLOW = world("AB", {"AB": (0.125, 0.5), "BA": (0.125, 0.5)})
"""A byte takes 8 s + 0.5 s."""


def replicas(mode):
    """Two replicas of two layers, each 4 s an iteration."""
    return Plan(
        placement=Placement(domain_of_layer=(0, 0)),
        replicas=(Placement(domain_of_layer=(1, 1)),),
        synchronisation=mode,
    )


TWO_LAYERS = unit_workload([(1, 1)] * 2, num_microbatches=2)


def test_every_so_many_steps_the_iteration_holds_an_exchange():
    chosen = replicas(DiLoCo(steps_between=3))

    history = run_training(SLOW, TWO_LAYERS, chosen, TrainingRun(num_iterations=7))

    for step, row in enumerate(history.iterations):
        result = simulate(SLOW, TWO_LAYERS, chosen, step=step)
        assert row.duration_s == result.makespan_s
        assert row.exposed_exchange_s == result.exposed_exchange_s
        assert row.num_bytes == result.communication_cost_bytes
    assert [row.duration_s > 4.0 for row in history.iterations] == [
        *(False, False, True),
        *(False, False, True, False),
    ]


@pytest.mark.parametrize(
    ("overlap_steps", "durations_s"), [(1, [4.0, 17.0, 17.0, 17.0]), (2, [4.0, 4.0, 13.0, 17.0])]
)
def test_a_put_off_exchange_must_have_arrived_by_the_end_of_the_last_step_of_overlap(
    overlap_steps, durations_s
):
    """A layer after every step: 2 bytes in two steps of a ring, 2 (8 + 0.5) = 17 s.

    They start at 4, 21 and 38 s, each when the one before has arrived. With one step of overlap
    the second iteration ends with the first exchange, at 21 s, the third at 38 s and so on. With
    two the third iteration, of 8-12 s, ends at 21 s and the fourth, of 21-25 s, at 38 s.
    """
    mode = StreamingDiLoCo(steps_between=2, layers_per_fragment=1, overlap_steps=overlap_steps)

    history = run_training(SLOW, TWO_LAYERS, replicas(mode), TrainingRun(num_iterations=4))

    assert [row.duration_s for row in history.iterations] == durations_s
    assert [row.exposed_exchange_s for row in history.iterations] == [d - 4.0 for d in durations_s]
    assert [row.num_bytes for row in history.iterations] == [4.0] * 4
    assert history.total_s == sum(durations_s)
    half = history.iterations[0].utilisation
    assert half == 1.0  # both domains compute all the time
    assert [row.utilisation for row in history.iterations] == [4.0 / d for d in durations_s]


def test_an_exchange_that_is_hidden_costs_no_time():
    mode = StreamingDiLoCo(steps_between=20, layers_per_fragment=2, overlap_steps=10)

    history = run_training(SLOW, TWO_LAYERS, replicas(mode), TrainingRun(num_iterations=60))

    assert history.total_s == 240.0


def test_put_off_exchanges_send_as_many_bytes_as_those_that_are_not():
    topology = world(
        "ABC", {"AB": (1.0, 0.0), "BA": (1.0, 0.0), "BC": (1.0, 0.0), "CB": (1.0, 0.0)}
    )
    workload = unit_workload([(1, 1)] * 5, num_microbatches=3)
    for step in range(6):
        at_once, behind = (
            Plan(
                placement=Placement(domain_of_layer=(0,) * 5),
                replicas=tuple(Placement(domain_of_layer=(domain,) * 5) for domain in (1, 2)),
                synchronisation=StreamingDiLoCo(
                    steps_between=4, layers_per_fragment=2, overlap_steps=overlap_steps
                ),
            )
            for overlap_steps in (0, 1)
        )
        sent = simulate(topology, workload, at_once, step=step).communication_cost_bytes
        buckets = buckets_behind(workload, behind, step)
        assert bytes_behind(topology, behind.stages, buckets) == pytest.approx(sent)


def test_a_change_of_plan_waits_for_exchanges_under_way():
    """The exchange of step 0 is due at 21 s; the border at 4 s finds it under way."""
    mode = StreamingDiLoCo(steps_between=2, layers_per_fragment=2, overlap_steps=9)
    first = replicas(mode)
    second = replace(first, schedule="gpipe")
    run = TrainingRun(num_iterations=3, epoch_s=8.0, restart_s=1.0)

    history = run_training(SLOW, TWO_LAYERS, alternate(first, second, second, second), run)

    exchange_s = 2 * (2 * 8.0 + 0.5)
    assert [row.start_s for row in history.iterations] == [0.0, 4.0, 8.0 + exchange_s + 1.0]
    assert history.epochs[1].drain_s == exchange_s
    assert history.epochs[1].migration_s == 1.0
    assert history.idle_s == exchange_s
