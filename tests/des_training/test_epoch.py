"""Epochs: what a change of plan costs, then iterations one after the other."""

import dataclasses

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import laws
from strategies import cases, corrections, placements, plan, unit_workload, world

from des import (
    DiLoCo,
    EpochResult,
    IterationResult,
    Movement,
    Placement,
    Plan,
    Replay,
    Topology,
    migration_s,
    moved_bytes,
    simulate,
    simulate_epoch,
)
from des.dynamics import LinkSeries
from des.plan.replacement import RESTART_S

PAIR = world("AB", {"AB": (8.0, 0.5), "BA": (4.0, 0.25)})
FOUR_LAYERS = unit_workload([(1, 1)] * 4, num_microbatches=1, message_bytes=4.0)
"""One microbatch; four layers of 16 bytes of state, 1 s forward and 1 s backward."""

ALONE, SPLIT = plan(0, 0, 0, 0), plan(0, 0, 1, 1)
SPLIT_S = 10.25
"""Forward 2 s, 0.5 s + 0.5 s to B, 2 s; backward 2 s, 1 s + 0.25 s to A, 2 s."""
MOVE_S = 4.5
"""Two layers go to B one after the other, 2 s each, and the last one flies for 0.5 s."""


def slower_from(time_s: float) -> Topology:
    """The pair of domains, with A->B down to 2 bytes/s from some time on."""
    law = Replay(
        name="trace",
        holds_last=True,
        series=tuple(
            LinkSeries(
                source=link.source,
                target=link.target,
                times_s=(0.0, time_s),
                bandwidths_bytes_per_s=(link.bandwidth_bytes_per_s, then),
                latencies_s=(link.latency_s,) * 2,
            )
            for link, then in zip(PAIR.links, (2.0, 4.0), strict=True)
        ),
    )
    return dataclasses.replace(PAIR, movement=Movement(law=law, seed=0))


def one_by_one(
    topology: Topology, epoch: EpochResult, judge
) -> tuple[list[IterationResult], float]:
    """Iterations one by one, each on the links as they are when the last one has ended."""
    now_s, results = epoch.migration_s, []
    for step in range(epoch.num_iterations):
        results.append(judge(topology.later(now_s), step))
        now_s += results[-1].makespan_s
    return results, now_s


# By hand: all numbers are binary fractions, so that comparisons are exact.


def test_an_epoch_by_hand():
    """4.5 s + 3.5 s to change, then two iterations; 8 FLOPs in each, on 2 FLOP/s."""
    epoch = simulate_epoch(
        PAIR, FOUR_LAYERS, SPLIT, num_iterations=2, previous=ALONE, restart_s=3.5
    )

    assert epoch.migration_s == MOVE_S + 3.5
    assert epoch.moved_bytes == 32.0
    assert epoch.num_iterations == 2
    assert epoch.duration_s == 8.0 + 2 * SPLIT_S
    assert epoch.iteration_time_s == 4.0 + SPLIT_S
    assert epoch.utilisation == 2 * 8 / (2 * 28.5)
    assert epoch.communication_cost_bytes == (2 * 8 + 32) / 2
    assert epoch.bubble_fraction == 1 - 2 * 8 / (2 * 28.5)


def test_an_iteration_runs_on_the_links_as_they_are_when_it_starts():
    """The second one starts at 18.25 s, and sends at 2 bytes/s: 2 s instead of 0.5 s."""
    epoch = simulate_epoch(
        slower_from(20.0), FOUR_LAYERS, SPLIT, num_iterations=2, previous=ALONE, restart_s=3.5
    )

    assert [one.makespan_s for one in epoch.iterations] == [SPLIT_S, SPLIT_S + 1.5]
    assert epoch.duration_s == 8.0 + 2 * SPLIT_S + 1.5


def test_the_change_runs_on_the_links_at_the_start():
    """From 2 s on a layer takes 8 s: there at 2 + 8 + 0.5 s, and the message takes 2 s."""
    epoch = simulate_epoch(slower_from(2.0), FOUR_LAYERS, SPLIT, previous=ALONE, restart_s=0.0)

    assert epoch.migration_s == 10.5
    assert epoch.duration_s == 10.5 + SPLIT_S + 1.5


def test_a_change_whose_bytes_are_there_already_costs_the_restart():
    epoch = simulate_epoch(
        PAIR, FOUR_LAYERS, SPLIT, previous=ALONE, restart_s=3.5, pays_bytes=False
    )

    assert (epoch.migration_s, epoch.moved_bytes) == (3.5, 0.0)
    assert epoch.communication_cost_bytes == 8.0


def test_a_restart_takes_what_was_measured_unless_told():
    epoch = simulate_epoch(PAIR, FOUR_LAYERS, SPLIT, previous=ALONE)

    assert epoch.migration_s == MOVE_S + RESTART_S


@pytest.mark.parametrize("previous", [None, SPLIT])
def test_a_plan_that_stays_or_is_the_first_costs_nothing(previous):
    epoch = simulate_epoch(PAIR, FOUR_LAYERS, SPLIT, num_iterations=3, previous=previous)

    assert (epoch.migration_s, epoch.moved_bytes) == (0.0, 0.0)
    assert epoch.duration_s == 3 * SPLIT_S


# For any case.


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(), found=corrections())
def test_one_iteration_without_a_change_has_the_figures_of_the_iteration(case, found):
    """To the last bit."""
    epoch = simulate_epoch(*case, corrections=found)
    result = simulate(*case, found)

    assert epoch.iterations == (result,)
    assert epoch.duration_s == epoch.iteration_time_s == result.makespan_s
    assert epoch.utilisation == result.utilisation
    assert epoch.communication_cost_bytes == result.communication_cost_bytes
    assert epoch.bubble_fraction == result.bubble_fraction
    assert epoch.fits_memory == result.fits_memory
    assert (epoch.memory_overflow_fraction == 0) == epoch.fits_memory


@settings(max_examples=examples(60), deadline=None)
@given(
    case=cases(min_domains=2),
    law=laws(outages=False),
    seed=st.integers(0, 2**32),
    num_iterations=st.integers(1, 4),
    draw=st.data(),
)
def test_iterations_on_moving_links_are_those_of_later_worlds(
    case, law, seed, num_iterations, draw
):
    """The change costs what it costs alone, and moves the bytes that it has to."""
    topology, workload, chosen = case
    topology = dataclasses.replace(topology, movement=Movement(law=law, seed=seed))
    previous = Plan(placement=draw.draw(placements(topology.num_domains, workload.num_layers)))
    epoch = simulate_epoch(
        topology, workload, chosen, num_iterations=num_iterations, previous=previous, restart_s=2.0
    )

    expected, end_s = one_by_one(topology, epoch, lambda now, step: simulate(now, workload, chosen))
    assert epoch.iterations == tuple(expected)
    assert epoch.duration_s == end_s
    assert epoch.migration_s == migration_s(topology, workload, previous, chosen, restart_s=2.0)
    moved = sum(moved_bytes(workload, previous, chosen).values())
    assert epoch.moved_bytes == pytest.approx(moved)
    sent = sum(one.communication_cost_bytes for one in expected)
    assert num_iterations * epoch.communication_cost_bytes == pytest.approx(sent + moved)
    busy_s = sum(stage.busy_s for one in expected for stage in one.stages)
    num_used = len({(stage.domain, stage.device) for stage in expected[0].stages})
    assert epoch.bubble_fraction == pytest.approx(1 - busy_s / (num_used * end_s))
    flops = num_iterations * workload.flops_per_iteration
    assert epoch.utilisation == pytest.approx(flops / (topology.peak_flops_per_s * end_s))
    again = simulate_epoch(
        topology, workload, chosen, num_iterations=num_iterations, previous=previous, restart_s=2.0
    )
    assert again == epoch


def test_replicas_exchange_when_their_steps_are_due():
    """Every second step, counted over the training: the second and fourth from step 4 on."""
    replicas = Plan(
        placement=Placement(domain_of_layer=(0, 0)),
        replicas=(Placement(domain_of_layer=(1, 1)),),
        synchronisation=DiLoCo(steps_between=2),
    )
    workload = unit_workload([(1, 1)] * 2, num_microbatches=2, message_bytes=4.0)
    epochs = [
        simulate_epoch(PAIR, workload, replicas, num_iterations=4, first_step=first_step)
        for first_step in (4, 5)
    ]

    for first_step, epoch in zip((4, 5), epochs, strict=True):
        expected, _ = one_by_one(
            PAIR,
            epoch,
            lambda now, step, first=first_step: simulate(
                now, workload, replicas, step=first + step
            ),
        )
        assert epoch.iterations == tuple(expected)
    exchanged = [[one.communication_cost_bytes > 0 for one in epoch.iterations] for epoch in epochs]
    assert exchanged == [[False, True, False, True], [True, False, True, False]]


def test_iterations_that_cannot_differ_are_simulated_once_and_others_each():
    asked = []

    def counting(topology: Topology, *case: object) -> IterationResult:
        asked.append(topology)
        return simulate(topology, *case)

    steady = simulate_epoch(
        PAIR, FOUR_LAYERS, SPLIT, num_iterations=5, previous=ALONE, simulator=counting
    )
    assert asked == [PAIR]
    assert steady.iterations == (simulate(PAIR, FOUR_LAYERS, SPLIT),) * 5
    assert steady.duration_s == pytest.approx(steady.migration_s + 5 * SPLIT_S)

    moving = slower_from(1e6)
    still = simulate_epoch(moving, FOUR_LAYERS, SPLIT, num_iterations=5, simulator=counting)
    assert asked[1:] == [moving.later(index * SPLIT_S) for index in range(5)]
    assert {one.makespan_s for one in still.iterations} == {SPLIT_S}


# What is refused.


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_iterations": 0}, "epoch: num_iterations must be a whole number from 1 .*, got 0"),
        ({"num_iterations": 1.0}, "epoch: num_iterations must be a whole number .*, got 1.0"),
        ({"first_step": -1}, "epoch: first_step must be a whole number of at least 0, got -1"),
        ({"first_step": True}, "epoch: first_step must be a whole number of .* 0, got True"),
        ({"previous": ALONE, "restart_s": -1.0}, "migration: restart_s must be finite and not neg"),
        ({"previous": plan(0, 0)}, "must hold one domain for each of the 4 layers"),
        ({"previous": plan(0, 0, 0, 2)}, "layer 3 must be on one of the domains A 0, B 1; got 2"),
    ],
)
def test_an_epoch_refuses_impossible_figures(fields, message):
    with pytest.raises(ValueError, match=message):
        simulate_epoch(PAIR, FOUR_LAYERS, SPLIT, **fields)
