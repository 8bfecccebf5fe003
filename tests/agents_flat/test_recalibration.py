"""Environments whose factors change in the middle: as if these had been there from the start."""

import dataclasses
import json
import threading

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from recalibrating import (
    DRAWN,
    EPOCHS,
    FACTORS,
    GIVEN,
    LAW,
    NUM_BEFORE,
    TASKS,
    batch,
    corrected,
    limited_simulator,
    play,
    some_actions,
    to_bytes,
    under,
)
from reference_programs import small_case
from strategies import corrections

from agents.flat.compiled_batch import is_compilable
from agents.flat.env import make_task
from agents.flat.plain_corrections import from_plain, to_plain
from des import NO_CORRECTIONS, Corrections
from des.plan.replacement import Replacement


@pytest.mark.parametrize("num_workers", [1, 3])
@pytest.mark.parametrize("replacement", [None, Replacement(restart_s=2.0)], ids=["free", "paid"])
@pytest.mark.parametrize("name", TASKS)
def test_factors_that_come_later_act_as_those_that_were_always_there(
    name, replacement, num_workers
):
    """After the same actions the seats are the same whatever the factors, and so is the rest."""
    task = dataclasses.replace(TASKS[name], replacement=replacement)
    actions = some_actions(task)
    assert is_compilable(task) == ("greedy" not in name)
    with (
        batch(task, num_workers) as env,
        batch(corrected(task)) as always,
        batch(corrected(task), num_workers) as loaded,
    ):
        assert env.reset().tobytes() == always.reset().tobytes()
        before = play(env, actions[:NUM_BEFORE])
        for one, other in zip(before, play(always, actions[:NUM_BEFORE]), strict=True):
            assert one.observations.tobytes() == other.observations.tobytes()
            different = one.metrics["iteration_time_s"] != other.metrics["iteration_time_s"]
            assert different.all()
        state = json.loads(json.dumps(under(env, FACTORS)))
        env.load_state(state)
        loaded.load_state(state)

        assert env.task == corrected(task)
        assert env.state() == always.state() == state
        expected = to_bytes(play(always, actions[NUM_BEFORE:]))
        assert to_bytes(play(env, actions[NUM_BEFORE:])) == expected
        assert to_bytes(play(loaded, actions[NUM_BEFORE:])) == expected
        assert env.state() == always.state()


@settings(max_examples=examples(20), deadline=None)
@given(first=corrections(), then=corrections(), num_before=st.integers(0, 2 * EPOCHS))
def test_no_factors_leave_a_trace_in_what_follows(first, then, num_before):
    task = dataclasses.replace(DRAWN, replacement=Replacement())
    actions = some_actions(task)
    env, always = batch(corrected(task, first)), batch(corrected(task, then))
    for one in (env, always):
        one.reset()
        play(one, actions[:num_before])

    env.load_state(under(env, then))

    assert to_bytes(play(env, actions[num_before:])) == to_bytes(play(always, actions[num_before:]))


@pytest.mark.parametrize("name", TASKS)
def test_state_holds_the_factors_in_force(name):
    env = batch(TASKS[name])
    env.reset()
    assert env.state()["corrections"] == NO_CORRECTIONS.plain()

    env.load_state(under(env, FACTORS))
    assert env.state()["corrections"] == FACTORS.plain()


def test_changed_batch_has_as_many_threads_and_ends_them_all():
    num_before = threading.active_count()
    with batch(DRAWN, num_workers=3) as env:
        env.reset()
        assert threading.active_count() > num_before
        for factors in (FACTORS, NO_CORRECTIONS, FACTORS):
            env.load_state(under(env, factors))
            env.step(some_actions(DRAWN)[0])
            assert num_before < threading.active_count() <= num_before + 3
    assert threading.active_count() == num_before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"wan_bandwidth_factor": 0.0}, "wan_bandwidth_factor must be positive and finite, got 0"),
        ({"compute_time_factor": float("nan")}, "compute_time_factor must be positive and finite"),
        ({"message_overhead_s": -1.0}, "message_overhead_s must be finite and not negative"),
        ({"intra_latency_factor": "2"}, "intra_latency_factor of corrections must be a float.*'2'"),
        ({"wan_latency_factor": True}, "wan_latency_factor of corrections must be a float.*True"),
        (
            {"wan_delay_factor": 1.0},
            "corrections must have no fields but .*; got 'wan_delay_factor'",
        ),
    ],
)
@pytest.mark.parametrize("name", ["drawn", "greedy"])
def test_bad_factors_are_refused_by_name_and_nothing_has_changed(name, changes, message):
    """Seats that are all right but not the present ones are not taken either."""
    actions = some_actions(TASKS[name])
    env, twin = batch(TASKS[name]), batch(TASKS[name])
    for one in (env, twin):
        one.reset()
    first = under(env, FACTORS)
    for one in (env, twin):
        play(one, actions[:NUM_BEFORE])

    with pytest.raises(ValueError, match=message):
        env.load_state({**first, "corrections": {**first["corrections"], **changes}})

    assert env.task is TASKS[name]
    assert env.state() == twin.state()
    assert to_bytes(play(env, actions[NUM_BEFORE:])) == to_bytes(play(twin, actions[NUM_BEFORE:]))


def test_missing_factors_are_refused_by_name():
    env = batch(DRAWN)
    env.reset()
    state = env.state()

    with pytest.raises(ValueError, match="batched environment: state must have corrections, got"):
        env.load_state({"seats": state["seats"]})
    with pytest.raises(ValueError, match=r"environment: corrections must be a dict of .*got None"):
        env.load_state({**state, "corrections": None})
    del state["corrections"]["wan_latency_factor"]
    with pytest.raises(ValueError, match="corrections must have wan_latency_factor, got"):
        env.load_state(state)


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 0.5},
        {"number": 2**63},
        {"epoch": True},
        {"epoch": EPOCHS},
        {"domain_of_layer": [0.0] * 8},
    ],
    ids=str,
)
def test_bad_seats_are_refused_before_factors_change(changes):
    env, twin = batch(DRAWN), batch(DRAWN)
    for one in (env, twin):
        one.reset()
    state = under(env, FACTORS)
    state["seats"][-1].update(changes)

    with pytest.raises(ValueError, match="batched environment: state must"):
        env.load_state(state)

    assert env.task is DRAWN
    actions = some_actions(DRAWN)
    assert to_bytes(play(env, actions)) == to_bytes(play(twin, actions))


def test_factors_that_cannot_be_simulated_with_are_not_taken():
    """Nor are the seats that come with them."""
    task = dataclasses.replace(GIVEN, simulator=limited_simulator)
    env, twin = batch(task), batch(task)
    actions = some_actions(task)
    for one in (env, twin):
        one.reset()
    first = under(env, FACTORS)
    for one in (env, twin):
        play(one, actions[:NUM_BEFORE])

    with pytest.raises(ArithmeticError, match="out of its depth"):
        env.load_state(first)

    assert env.task is task
    assert to_bytes(play(env, actions[NUM_BEFORE:])) == to_bytes(play(twin, actions[NUM_BEFORE:]))


@pytest.mark.parametrize("replacement", [None, Replacement(restart_s=2.0)], ids=["free", "paid"])
def test_a_backend_is_not_corrected_but_changes_of_placement_are(replacement):
    """As in a task that has had the factors from the start."""
    case = small_case("overlapped", num_microbatches=2)
    task = make_task(
        topology=dataclasses.replace(case.topology, dynamics=LAW),
        workload=case.workload,
        epochs_per_episode=EPOCHS,
        replacement=replacement,
        backend="astra-pairwise",
    )
    actions = some_actions(task)
    env, always, never = batch(task), batch(corrected(task)), batch(task)
    for one in (env, always, never):
        one.reset()
        play(one, actions[:NUM_BEFORE])

    env.load_state(under(env, FACTORS))
    played, expected, without = (play(one, actions[NUM_BEFORE:]) for one in (env, always, never))

    assert to_bytes(played) == to_bytes(expected)
    assert (to_bytes(played) == to_bytes(without)) == (replacement is None)
    for one, other in zip(played, without, strict=True):
        times_s = [
            step.metrics["iteration_time_s"] - step.metrics["migration_s"] for step in (one, other)
        ]
        np.testing.assert_allclose(*times_s, rtol=1e-12)  # an epoch is of one iteration


def test_plain_factors_come_back_whatever_numbers_they_were():
    factors = Corrections(compute_time_factor=2, wan_bandwidth_factor=np.float64(0.1))

    plain = to_plain(factors)

    assert {type(value) for value in plain.values()} == {float}
    assert from_plain(plain, "test") == factors
