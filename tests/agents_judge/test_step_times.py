"""Mean steps over a period: hand-computed cases, training runs, and the rules step by step."""

import dataclasses
from collections import deque
from functools import partial

import numpy as np
import pytest
from examples import examples
from family_plans import families
from hypothesis import given, settings
from hypothesis import strategies as st
from limited_worlds import limited
from strategies import corrections, plan, topologies, unit_workload, workloads, world

from agents.judge.step_times import step_times_s, step_wan_bytes
from des import (
    Corrections,
    DiLoCo,
    Movement,
    Plan,
    StreamingDiLoCo,
    Topology,
    TrainingRun,
    UniformLaw,
    Workload,
    run_training,
    simulate,
)
from des.compiled.simulate import simulate_compiled
from des.plan.synchronisation import fragments_due
from des.simulation.iteration import exchange_behind_s

TWO_LAYERS = unit_workload([(1, 2)] * 2, num_microbatches=4)
"""6 s a microbatch on a domain of 1 FLOP/s; gradients of 2 x 2 bytes."""

PAIR = world("AB", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)})


def two_replicas(num_layers: int = 2, **fields: object) -> Plan:
    """A copy of the model in each of two domains."""
    other = plan(*[1] * num_layers).placement
    return dataclasses.replace(plan(*[0] * num_layers), replicas=(other,), **fields)


def step_by_step_s(topology: Topology, workload: Workload, one: Plan, found: Corrections) -> float:
    """Mean step of the second period by the readable engine, a step after the other. [s]"""
    mode, now_s, free_s, first_s = one.synchronisation, 0.0, 0.0, 0.0
    under_way: deque[tuple[int, float]] = deque()
    for step in range(2 * mode.steps_between):
        if step == mode.steps_between:
            first_s = now_s
        now_s += simulate(topology, workload, one, found, step=step).makespan_s
        if mode.overlap_steps > 0 and fragments_due(mode, step, workload.num_layers):
            exchange_s = exchange_behind_s(topology, workload, one, step, found)
            free_s = max(now_s, free_s) + exchange_s
            under_way.append((step, free_s))
        while under_way and under_way[0][0] + mode.overlap_steps <= step:
            now_s = max(now_s, under_way.popleft()[1])
    return (now_s - first_s) / mode.steps_between


@settings(max_examples=examples(30), deadline=None)
@given(
    data=st.data(),
    topology=topologies(min_domains=2, max_domains=4),
    workload=workloads(num_layers=6, max_microbatches=5),
    found=corrections(),
)
def test_mean_steps_are_those_of_the_rules_step_by_step(data, topology, workload, found):
    """Where sites have uplinks and caps as well."""
    topology = dataclasses.replace(topology, movement=None)
    if data.draw(st.booleans()):
        topology = data.draw(limited(topology))
    plans = [data.draw(families(topology, workload)) for _ in range(3)]
    replicated = [one for one in plans if one.replicas]

    times_s = step_times_s(topology, workload, plans, found).tolist()
    again = step_times_s(topology, workload, plans, found, simulator=partial(simulate))
    assert times_s == again.tolist()
    for one, time_s in zip(plans, times_s, strict=True):
        if one in replicated:
            assert time_s == step_by_step_s(topology, workload, one, found)
        else:
            assert time_s == simulate(topology, workload, one, found).makespan_s


def test_diloco_waits_for_its_exchange_every_hundredth_step():
    rare = two_replicas(synchronisation=DiLoCo(steps_between=100))

    assert step_times_s(PAIR, TWO_LAYERS, [rare])[0] == pytest.approx(12 + 4 / 100)
    assert step_wan_bytes(TWO_LAYERS, [rare]).tolist() == [2 * 4 / 100]


@pytest.mark.parametrize(("rate", "waited_s"), [(1.0, 0), (0.2, 8)])
def test_streaming_diloco_waits_for_what_a_step_does_not_hide(rate, waited_s):
    """Two layers are one fragment: 4 bytes in 4 s or 20 s, behind a step of 12 s."""
    pair = world("AB", {"AB": (rate, 0.0), "BA": (rate, 0.0)})
    streaming = two_replicas(synchronisation=StreamingDiLoCo(steps_between=100))

    assert step_times_s(pair, TWO_LAYERS, [streaming])[0] == pytest.approx(12 + waited_s / 100)


@pytest.mark.parametrize("rate", [0.02, 0.2, 2.0])
@pytest.mark.parametrize("overlap_steps", [0, 1, 3])
def test_the_mean_step_is_that_of_a_training_run(rate, overlap_steps):
    workload = unit_workload([(1, 2)] * 7, num_microbatches=4)
    pair = world("AB", {"AB": (rate, 0.1), "BA": (rate, 0.1)})
    mode = StreamingDiLoCo(steps_between=8, layers_per_fragment=2, overlap_steps=overlap_steps)
    streaming = two_replicas(7, synchronisation=mode)

    run = TrainingRun(num_iterations=16, epoch_s=float("inf"))
    history = run_training(pair, workload, streaming, run)
    second = sum(row.duration_s for row in history.iterations[8:])
    assert step_times_s(pair, workload, [streaming])[0] == pytest.approx(second / 8)


def test_the_mean_step_of_a_plan_that_synchronises_every_step_is_its_iteration():
    plans = [two_replicas(), plan(0, 1), plan(1, 1)]

    assert step_times_s(PAIR, TWO_LAYERS, plans, simulator=simulate_compiled).tolist() == [
        simulate(PAIR, TWO_LAYERS, one).makespan_s for one in plans
    ]


def test_the_mean_step_is_refused_on_links_that_move():
    law = UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=1.0)
    moving = dataclasses.replace(PAIR, movement=Movement(law=law, seed=0))

    with pytest.raises(ValueError, match="step times: topology must stand still"):
        step_times_s(moving, TWO_LAYERS, [two_replicas()])


@settings(max_examples=examples(30), deadline=None)
@given(
    data=st.data(),
    topology=topologies(min_domains=2, max_domains=4, fully=True),
    workload=workloads(num_layers=6, max_microbatches=5),
)
def test_bytes_of_a_mean_step_are_those_that_a_period_sends(data, topology, workload):
    """Over direct links, where the bytes of a link are those of its messages."""
    topology = dataclasses.replace(topology, movement=None)
    one = data.draw(families(topology, workload))
    mode = one.synchronisation
    if mode.overlap_steps > 0:  # what continues behind steps is sent all the same
        waiting = dataclasses.replace(mode, overlap_steps=0)
        one = dataclasses.replace(one, synchronisation=waiting)
    steps = range(mode.steps_between)
    sent = [simulate(topology, workload, one, step=each).communication_cost_bytes for each in steps]

    assert step_wan_bytes(workload, [one])[0] == pytest.approx(np.mean(sent))
