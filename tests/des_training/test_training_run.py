"""A training run is its iterations one after another, plus what waiting and new plans cost."""

import math
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import cases, corrections, plan, unit_domain, unit_workload, world

from des import (
    STEADY,
    Dynamics,
    InfeasiblePlacementError,
    Movement,
    Placement,
    Plan,
    simulate,
)
from des.dynamics import (
    LinkSeries,
    LinkState,
    MarkovModulated,
    OrnsteinUhlenbeck,
    Product,
    Replay,
)
from des.dynamics.link_course import StarvationError
from des.engine.migration import migration_s, moved_bytes
from des.plan.synchronisation import DiLoCo, StreamingDiLoCo
from des.training.background import BackgroundLoad, beside_jobs
from des.training.step_figures import bytes_behind
from des.training.training_run import LONGEST_STALL_S, run_training
from des.training.training_settings import TrainingRun
from des.world.domain_load import IDLE, DomainLoad
from des.world.transport import Transport

FOUR_LAYERS = unit_workload([(1, 1)] * 4, num_microbatches=1)
"""Four layers of 2 s and 16 bytes of state each: 8 s an iteration in one domain."""

PAIR = world("AB", {"AB": (8.0, 0.5), "BA": (4.0, 0.25)})
"""A layer takes 2 s + 0.5 s from A to B, 4 s + 0.25 s back; messages of iterations are empty."""

ALL_IN_A, LAST_IN_B = plan(0, 0, 0, 0), plan(0, 0, 0, 1)
"""8 s, and 8.75 s for the latencies there and back."""

JOBS = BackgroundLoad(
    arrivals_per_s=0.05, mean_duration_s=30.0, gpu_fraction=0.25, memory_fraction=0.2, most_jobs=3
)


SIMPLE_SCHEDULES = ("1f1b", "gpipe")
"""Quick to make for any placement."""


def load_of(sample):
    """The load of a domain as a sample has it."""
    return DomainLoad(
        utilisation=sample.gpu_utilisation,
        memory_occupancy=sample.memory_occupancy,
        queue_length=sample.queue_length,
    )


def with_room(topology):
    """The same world with memory for anything."""
    return replace(
        topology,
        domains=tuple(replace(domain, gpu_memory_bytes=1e30) for domain in topology.domains),
    )


def moving(topology, law, *, start_s=0.0):
    return replace(topology, movement=Movement(law=law, seed=3, start_s=start_s))


def alternate(*plans):
    """Planner that goes through plans in turn, one an epoch that it is asked in."""
    turns = iter(plans * 1000)
    return lambda view: next(turns)


def loads_at(history, time_s):
    """Loads of all domains at a time, from the series."""
    loads = [IDLE] * len(history.domains)
    for sample in history.loads:
        if sample.time_s <= time_s:
            loads[sample.domain] = load_of(sample)
    return tuple(loads)


# Iterations on their own.


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


def test_a_hundred_thousand_equal_iterations_are_simulated_once():
    """Else this takes a minute; every time is a binary fraction, so the sum is exact."""
    history = run_training(PAIR, FOUR_LAYERS, LAST_IN_B, TrainingRun(num_iterations=100_000))

    assert history.total_s == 100_000 * 8.75


LAWS = [
    Dynamics(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=2.5),
    Dynamics(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=200.0),
    Dynamics(bandwidth_fluctuation=0.0, latency_jitter=0.0, update_interval_s=0.5),
    OrnsteinUhlenbeck(bandwidth_sigma=0.3, latency_sigma=0.1, relaxation_s=60.0, interval_s=5.0),
    MarkovModulated(
        states=(
            LinkState(
                name="up", bandwidth_factor=1.0, mean_dwell_s=90.0, followed_by=(("down", 1.0),)
            ),
            LinkState(
                name="down", bandwidth_factor=0.0, mean_dwell_s=20.0, followed_by=(("up", 1.0),)
            ),
        )
    ),
]


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
    law = Dynamics(bandwidth_fluctuation=0.5, latency_jitter=0.5)
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


@given(epoch_s=st.floats(1e-3, 1e3), epoch=st.integers(0, 10**6))
def test_a_border_belongs_to_the_epoch_that_it_opens(epoch_s, epoch):
    run = TrainingRun(num_iterations=1, epoch_s=epoch_s)

    assert run.epoch_at(epoch * epoch_s) == epoch
    assert run.epoch_at(math.nextafter((epoch + 1) * epoch_s, 0.0)) == epoch


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


# Other jobs.


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


def test_a_plan_that_never_fits_is_refused_at_its_border():
    small = replace(PAIR, domains=(unit_domain("A", memory_bytes=99.0), unit_domain("B")))
    run = TrainingRun(num_epochs=3, epoch_s=20.0)
    big = unit_workload([(1, 1)] * 8, num_microbatches=1)
    half, whole = plan(0, 0, 0, 0, 1, 1, 1, 1), plan(0, 0, 0, 0, 0, 0, 0, 0)

    with pytest.raises(InfeasiblePlacementError, match=r"domain A must hold at most 0\.0 GB"):
        run_training(small, big, alternate(half, whole), run)


# Replicas that do not wait for each other after every step.

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
        assert bytes_behind(topology, workload, behind, step) == pytest.approx(sent)


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


# Laws.


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


def test_jobs_and_links_follow_the_seed():
    run = TrainingRun(num_iterations=30, seed=0, background=(JOBS, JOBS))
    workload = unit_workload([(1, 1)] * 2, num_microbatches=3, message_bytes=4.1)
    topology = replace(PAIR, dynamics=LAWS[0])

    first = run_training(topology, workload, plan(0, 1), run)
    other = run_training(topology, workload, plan(0, 1), replace(run, seed=1))

    assert first.loads != other.loads
    assert first.iterations[0].duration_s != other.iterations[0].duration_s


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


def test_a_plan_of_another_model_is_refused():
    run = TrainingRun(num_epochs=2, epoch_s=20.0)

    with pytest.raises(ValueError, match="each of the 4 layers of unit, got 2"):
        run_training(PAIR, FOUR_LAYERS, alternate(ALL_IN_A, plan(0, 1)), run)


def test_a_background_of_another_world_is_refused():
    run = TrainingRun(num_iterations=1, background=(None,))

    with pytest.raises(ValueError, match="loads must hold one entry for each of 2 domains, got 1"):
        run_training(PAIR, FOUR_LAYERS, ALL_IN_A, run)


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
