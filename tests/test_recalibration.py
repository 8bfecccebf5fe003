"""Other correction factors in the middle of things: as if they had been there from the start."""

import dataclasses
import json
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_programs import small_case
from strategies import corrections

from agents.batch_step import BatchStep
from agents.batched_env import BatchedPlacementEnv
from agents.checkpoint import load_checkpoint, save_checkpoint
from agents.compiled_batch import is_compilable
from agents.env import make_task
from agents.networks import ActorCritic, Architecture
from agents.plain_corrections import from_plain, to_plain
from agents.ppo import Trainer
from agents.ppo_config import PPOConfig
from agents.recalibration import corrections_of, recalibrate
from agents.rollout import RolloutSource
from agents.rollout_source import LocalRollouts, environment_seed
from agents.task import PlacementTask, Replacement
from agents.worlds import DrawnWorld, GivenWorld
from des import NO_CORRECTIONS, Corrections, Dynamics, build_workload, read_topology, simulate
from des.worlds import EAST_CENTRAL_WEST

SEED, NUM_ENVS, EPOCHS, NUM_BEFORE, NUM_STEPS = 11, 4, 3, 4, 9
"""Factors change in the middle of the second of three episodes."""
FACTORS = Corrections(
    compute_time_factor=1.3,
    intra_bandwidth_factor=0.7,
    intra_latency_factor=1.9,
    wan_bandwidth_factor=0.6,
    wan_latency_factor=1.7,
    message_overhead_s=0.003,
)
JOB = build_workload("llama2_70b", num_layers=8, num_microbatches=4)
LAW = Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2)
MOVING = dataclasses.replace(LAW, update_interval_s=0.7)
DRAWN = PlacementTask(
    world=DrawnWorld(num_domains=3, dynamics=MOVING),
    workload=JOB,
    actions="order_split",
    epochs_per_episode=EPOCHS,
)
GIVEN = dataclasses.replace(
    DRAWN,
    world=GivenWorld(
        topology=dataclasses.replace(read_topology(EAST_CENTRAL_WEST), dynamics=MOVING)
    ),
    actions="per_layer",
    iterations_per_epoch=2,
)
TASKS = {
    "drawn": DRAWN,
    "given": GIVEN,
    "greedy": dataclasses.replace(DRAWN, schedule="greedy_2x"),
    "greedy given": dataclasses.replace(GIVEN, schedule="greedy_2x"),
}
"""Compiled code does the first two, episodes in Python the others."""


def corrected(task: PlacementTask, factors: Corrections = FACTORS) -> PlacementTask:
    return dataclasses.replace(task, corrections=factors)


def batch(task: PlacementTask, num_workers: int = 1) -> BatchedPlacementEnv:
    return BatchedPlacementEnv(task, num_envs=NUM_ENVS, seed=SEED, num_workers=num_workers)


def some_actions(task: PlacementTask) -> np.ndarray:
    sizes = task.codec.sizes
    return np.random.default_rng(0).integers(sizes, size=(NUM_STEPS, NUM_ENVS, len(sizes)))


def play(env: BatchedPlacementEnv, actions: np.ndarray) -> list[BatchStep]:
    return [env.step(action) for action in actions]


def to_bytes(steps: list[BatchStep]) -> list[dict[str, object]]:
    """All that steps returned, to the last bit."""
    return [
        {
            "metrics": {name: values.tobytes() for name, values in step.metrics.items()},
            **{
                field.name: getattr(step, field.name).tobytes()
                for field in dataclasses.fields(step)
                if field.name != "metrics"
            },
        }
        for step in steps
    ]


def under(env: BatchedPlacementEnv, factors: Corrections) -> dict[str, object]:
    """State of an environment with other factors."""
    return {**env.state(), "corrections": dataclasses.asdict(factors)}


# One environment.


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


@settings(max_examples=20, deadline=None)
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
    assert env.state()["corrections"] == dataclasses.asdict(NO_CORRECTIONS)

    env.load_state(under(env, FACTORS))
    assert env.state()["corrections"] == dataclasses.asdict(FACTORS)


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


def limited_simulator(topology, workload, plan, factors):
    """Simulate as the engine does, but nothing that computes more slowly than measured."""
    if factors.compute_time_factor > 1.2:
        raise ArithmeticError("simulator: out of its depth")
    return simulate(topology, workload, plan, factors)


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


# Several workers.


def source(*tasks: PlacementTask) -> LocalRollouts:
    environments = [
        BatchedPlacementEnv(task, num_envs=NUM_ENVS, seed=environment_seed(SEED, worker))
        for worker, task in enumerate(tasks)
    ]
    return LocalRollouts(environments, seed=SEED)


def network_for(rollouts: RolloutSource) -> ActorCritic:
    architecture = Architecture(
        observation_size=rollouts.observation_size,
        action_sizes=rollouts.action_sizes,
        ordinal_starts=rollouts.ordinal_starts,
        hidden_sizes=(8,),
    )
    return ActorCritic(architecture, torch.Generator().manual_seed(0))


def collected(rollouts: RolloutSource, num_steps: int = NUM_BEFORE) -> list[list[object]]:
    """The next rollouts of a policy that never changes, to the last bit."""
    return [
        [
            value.numpy().tobytes() if isinstance(value, torch.Tensor) else repr(value)
            for value in (getattr(one, field.name) for field in dataclasses.fields(one))
        ]
        for one in rollouts.collect(network_for(rollouts), num_steps)
    ]


@pytest.mark.parametrize("name", TASKS)
def test_recalibrated_workers_are_those_that_have_always_had_the_factors(name):
    """The policy acts on observations and random numbers, and neither depends on the factors."""
    task = TASKS[name]
    rollouts, always = source(task, task), source(corrected(task), corrected(task))
    assert collected(rollouts) != collected(always)

    recalibrate(rollouts, FACTORS)

    assert collected(rollouts) == collected(always)
    assert str(rollouts.state()) == str(always.state())


@pytest.mark.parametrize("name", TASKS)
def test_recalibration_with_the_factors_in_force_changes_nothing(name):
    """Nor does one there and back."""
    task = corrected(TASKS[name])
    rollouts, others, alone = source(task, task), source(task, task), source(task, task)
    for one in (rollouts, others, alone):
        collected(one)

    recalibrate(rollouts, FACTORS)
    recalibrate(others, NO_CORRECTIONS)
    recalibrate(others, FACTORS)

    assert str(rollouts.state()) == str(others.state()) == str(alone.state())
    assert collected(rollouts) == collected(others) == collected(alone)


def test_recalibration_moves_nothing_that_others_hold():
    """A state that was taken before leads back to the factors of then."""
    rollouts = source(DRAWN, DRAWN)
    state = rollouts.state()
    expected = collected(rollouts)

    recalibrate(rollouts, FACTORS)
    assert corrections_of(rollouts) == FACTORS
    rollouts.load_state(state)

    assert corrections_of(rollouts) == NO_CORRECTIONS
    assert collected(rollouts) == expected


def test_workers_that_disagree_have_no_common_factors():
    rollouts = source(DRAWN, DRAWN, corrected(DRAWN))

    with pytest.raises(
        ValueError, match=r"of worker 2 must have the corrections of worker 0, .*1\.3"
    ):
        corrections_of(rollouts)

    recalibrate(rollouts, FACTORS)
    assert corrections_of(rollouts) == FACTORS


def test_one_worker_that_cannot_go_on_leaves_all_where_they_were():
    """The first worker has changed when the second refuses."""
    limited = dataclasses.replace(GIVEN, simulator=limited_simulator)
    rollouts, twin = source(GIVEN, limited), source(GIVEN, limited)
    for one in (rollouts, twin):
        collected(one)

    with pytest.raises(ArithmeticError, match="out of its depth"):
        recalibrate(rollouts, FACTORS)

    assert corrections_of(rollouts) == NO_CORRECTIONS
    assert collected(rollouts) == collected(twin)


class Uncorrected(BatchedPlacementEnv):
    """One whose state is its seats alone."""

    def state(self) -> dict[str, object]:
        return {"seats": super().state()["seats"]}


def test_environments_without_factors_are_refused():
    rollouts = LocalRollouts([Uncorrected(DRAWN, num_envs=NUM_ENVS, seed=SEED)], seed=SEED)

    message = "environment of worker 0 must have corrections in its state, got seats"
    with pytest.raises(ValueError, match=message):
        recalibrate(rollouts, FACTORS)
    with pytest.raises(ValueError, match=message):
        corrections_of(rollouts)


# Training.


def trainer_of(task: PlacementTask) -> Trainer:
    config = PPOConfig(num_steps=4, num_minibatches=2, num_epochs=2, hidden_sizes=(8,))
    return Trainer(source(task, task), config, SEED, total_steps=6 * 2 * NUM_ENVS * 4)


def saved(trainer: Trainer, path: Path) -> bytes:
    save_checkpoint(path, trainer.state())
    return path.read_bytes()


@pytest.mark.parametrize("name", ["drawn", "greedy"])
@pytest.mark.parametrize("num_after", [0, 2])
def test_interrupted_training_goes_on_under_the_factors_in_force(name, num_after, tmp_path):
    """The new trainer is one of the task as built, which its fingerprint stays that of."""
    task = TASKS[name]
    fingerprint = task.fingerprint()
    trainer, never = trainer_of(task), trainer_of(task)
    for one in (trainer, never):
        one.update()
        one.update()
    recalibrate(trainer.rollouts, FACTORS)
    for _ in range(num_after):
        trainer.update()
    saved(trainer, tmp_path / "middle.pt")
    resumed = trainer_of(task)
    resumed.load_state(load_checkpoint(tmp_path / "middle.pt"))
    assert corrections_of(resumed.rollouts) == FACTORS
    for one in (trainer, never, resumed):
        while not one.finished:
            one.update()

    expected = saved(trainer, tmp_path / "straight.pt")
    assert saved(resumed, tmp_path / "resumed.pt") == expected
    assert not torch.equal(trainer.network.parameter, never.network.parameter)
    assert task.fingerprint() == fingerprint
