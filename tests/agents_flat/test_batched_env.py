"""The batch against single episodes, on one thread and on several."""

import copy
import dataclasses
import json
import threading

import numpy as np
import pytest
from strategies import unit_domain, unit_workload, world

from agents.decision.simulator import Simulator
from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.episode import Episode
from agents.flat.task import PlacementTask
from agents.flat.worlds import DrawnWorld, GivenWorld
from agents.ppo.batch_step import BatchStep
from des import Dynamics, IterationResult, Plan, Topology, simulate
from des.base.random_numbers import derived_seed

SEED, NUM_ENVS, NUM_LAYERS, EPOCHS = 17, 3, 4, 3
FATAL = (1, 1, 1, 1)
"""The placement on which the simulator of this module fails."""


def failing_simulator(topology: Topology, workload, plan: Plan, corrections) -> IterationResult:
    if plan.placement.domain_of_layer == FATAL:
        raise ArithmeticError("simulator: lost count")
    return simulate(topology, workload, plan, corrections)


def task(simulator: Simulator = simulate, actions: str = "per_layer") -> PlacementTask:
    """Four layers on two domains whose links are drawn anew in each episode, and move."""
    return PlacementTask(
        world=DrawnWorld(
            num_domains=2, dynamics=Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2)
        ),
        workload=unit_workload([(1e14, 2e14)] * NUM_LAYERS, num_microbatches=2, message_bytes=1e8),
        actions=actions,
        epochs_per_episode=EPOCHS,
        simulator=simulator,
    )


def batch(given: PlacementTask | None = None, num_workers: int = 1) -> BatchedPlacementEnv:
    return BatchedPlacementEnv(
        given or task(), num_envs=NUM_ENVS, seed=SEED, num_workers=num_workers
    )


def some_actions(num_steps: int) -> np.ndarray:
    """Actions shaped (num_steps, N, A), without the fatal one."""
    actions = np.random.default_rng(0).integers(2, size=(num_steps, NUM_ENVS, NUM_LAYERS))
    actions[..., 0] = 0
    return actions


def seed_of(position: int, number: int) -> int:
    """Seed of an episode of an environment, derived from that of the batch in two steps."""
    return derived_seed(derived_seed(SEED, position, 0), number, 0)


def play(env: BatchedPlacementEnv, actions: np.ndarray) -> list[BatchStep]:
    return [env.step(action) for action in actions]


def assert_equal_steps(some: list[BatchStep], others: list[BatchStep]) -> None:
    for one, other in zip(some, others, strict=True):
        for field in dataclasses.fields(BatchStep):
            np.testing.assert_equal(getattr(one, field.name), getattr(other, field.name))


# One thread.


def test_batch_is_single_episodes_side_by_side():
    """Episode n of the environment at position i has a seed that follows from (seed, i, n)."""
    env, given, actions = batch(), task(), some_actions(2 * EPOCHS + 1)
    first = env.reset()
    steps = play(env, actions)

    assert first.shape == (NUM_ENVS, given.observation_size)
    for position in range(NUM_ENVS):
        episode = Episode(given)
        np.testing.assert_array_equal(first[position], episode.begin(seed_of(position, 0)))
        for number, (action, step) in enumerate(zip(actions, steps, strict=True), start=1):
            placement = given.codec.decode(action[position].tolist())
            alone = episode.step(placement)
            np.testing.assert_array_equal(step.final_observations[position], alone.observation)
            assert step.rewards[position] == np.float32(alone.reward)
            assert step.truncated[position] == alone.truncated == (number % EPOCHS == 0)
            assert {name: values[position] for name, values in step.metrics.items()} == (
                alone.metrics
            )
            then = alone.observation
            if alone.truncated:
                then = episode.begin(seed_of(position, number // EPOCHS))
            np.testing.assert_array_equal(step.observations[position], then)


def test_final_observations_differ_from_observations_exactly_at_truncation():
    env = batch()
    env.reset()
    for step in play(env, some_actions(3 * EPOCHS)):
        differ = (step.final_observations != step.observations).any(axis=1)
        np.testing.assert_array_equal(differ, step.truncated)
        assert not step.terminated.any()


def test_arrays_are_shaped_and_typed_as_declared():
    env = batch()
    observations = env.reset()
    (step,) = play(env, some_actions(1))

    assert observations.dtype == np.float32
    assert step.observations.shape == step.final_observations.shape == (NUM_ENVS, 10)
    assert step.rewards.dtype == np.float32
    assert (env.observation_size, env.action_sizes, env.ordinal_starts) == (
        10,
        (2,) * NUM_LAYERS,
        (None,) * NUM_LAYERS,
    )
    compact = batch(task(actions="order_split"))
    assert (compact.action_sizes, compact.ordinal_starts) == ((2, 5), (None, 0.5))


def test_environments_and_seeds_differ_and_equal_seeds_do_not():
    others = BatchedPlacementEnv(task(), num_envs=NUM_ENVS, seed=SEED + 1).reset()
    ours = batch().reset()

    assert len({row.tobytes() for row in [*ours, *others]}) == 2 * NUM_ENVS
    np.testing.assert_array_equal(batch().reset(), ours)


def test_first_environments_do_not_depend_on_the_size_of_the_batch():
    larger = BatchedPlacementEnv(task(), num_envs=NUM_ENVS + 2, seed=SEED).reset()

    np.testing.assert_array_equal(larger[:NUM_ENVS], batch().reset())


@pytest.mark.parametrize("num_before", [0, 1, EPOCHS, EPOCHS + 2])
def test_state_is_plain_and_continues_exactly(num_before):
    """From the start, in the middle of an episode, just after its end, in the second one."""
    actions = some_actions(num_before + 2 * EPOCHS)
    env = batch()
    env.reset()
    play(env, actions[:num_before])
    saved = json.dumps(env.state())
    onwards = play(env, actions[num_before:])

    other = batch()
    other.load_state(json.loads(saved))
    assert_equal_steps(play(other, actions[num_before:]), onwards)
    assert other.state() == env.state()


def test_state_can_be_loaded_into_a_batch_that_has_played():
    actions = some_actions(2 * EPOCHS)
    env = batch()
    env.reset()
    state = env.state()
    first = play(env, actions)

    env.load_state(state)
    assert_equal_steps(play(env, actions), first)


def test_single_domain_can_be_stepped():
    """Nothing is communicated, and that is still a figure."""
    alone = dataclasses.replace(
        task(), world=GivenWorld(topology=Topology.of([unit_domain("A")], []))
    )
    env = batch(alone)
    env.reset()
    step = env.step(np.zeros((NUM_ENVS, NUM_LAYERS), dtype=np.int64))

    assert step.metrics["communication_cost_bytes"].tolist() == [0.0] * NUM_ENVS


@pytest.mark.parametrize("shape", [(NUM_ENVS - 1, 4), (NUM_ENVS, 3), (NUM_ENVS, 4, 1), (12,)])
def test_actions_of_another_shape_are_refused(shape):
    env = batch()
    env.reset()

    with pytest.raises(
        ValueError, match=r"batched environment: actions must be whole numbers shaped \(3, 4\)"
    ):
        env.step(np.zeros(shape, dtype=np.int64))


@pytest.mark.parametrize(
    ("actions", "action"),
    [
        ("per_layer", (0, 0, 0, 2)),
        ("per_layer", (0, 0, 0, -1)),
        ("per_layer", (0, 0, 0, 0.7)),
        ("order_split", (2, 2)),
        ("order_split", (-1, 2)),
        ("order_split", (0, 5)),
        ("order_split", (0, -1)),
    ],
)
def test_actions_out_of_range_are_refused(actions, action):
    env = batch(task(actions=actions))
    env.reset()

    with pytest.raises(ValueError, match="must"):
        env.step(np.array([action] * NUM_ENVS))


@pytest.mark.parametrize("field", ["num_envs", "num_workers"])
def test_counts_out_of_range_are_refused(field):
    counts = {"num_envs": 2, "num_workers": 1, field: 0}

    with pytest.raises(ValueError, match=f"batched environment: {field} must be a whole number"):
        BatchedPlacementEnv(task(), seed=0, **counts)


def test_steps_keep_their_arrays():
    """What a step has returned does not change with the next."""
    env, again = batch(), batch()
    env.reset()
    again.reset()
    kept, copies = [], []
    for action in some_actions(2 * EPOCHS):
        kept.append(env.step(action))
        copies.append(copy.deepcopy(again.step(action)))

    assert_equal_steps(kept, copies)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"domain_of_layer": [0, 0, 0]}, r"state must hold 4 layers within 2 domains, got"),
        ({"domain_of_layer": [0, 0, 0, 2]}, r"state must hold 4 layers within 2 domains, got"),
        ({"number": -1}, "state must be of an episode from 0 on"),
        ({"epoch": EPOCHS}, r"of an epoch within \[0, 3\), got 0 and 3"),
    ],
)
def test_state_of_another_task_is_refused(changes, message):
    env = batch()
    env.reset()
    state = env.state()
    state["seats"][1].update(changes)

    with pytest.raises(ValueError, match=f"batched environment: .*{message}"):
        env.load_state(state)


def test_state_of_another_size_is_refused():
    env = batch()
    env.reset()
    larger = BatchedPlacementEnv(task(), num_envs=NUM_ENVS + 1, seed=SEED)

    with pytest.raises(ValueError, match="state must be of 4 environments, got 3"):
        larger.load_state(env.state())


def test_step_before_reset_and_after_close_is_refused():
    env = batch()
    with pytest.raises(RuntimeError, match="environment: reset must be called first"):
        env.step(some_actions(1)[0])

    env.close()
    with pytest.raises(RuntimeError, match="batched environment: is closed"):
        env.reset()


# Several threads.


@pytest.mark.parametrize("num_workers", [2, 3, 8])
def test_results_do_not_depend_on_the_number_of_threads(num_workers):
    """Nor does the state, which may come from a batch with another number of them."""
    actions = some_actions(2 * EPOCHS)
    local = batch()
    first = local.reset()
    steps = play(local, actions[:2])
    state = local.state()
    steps += play(local, actions[2:])

    with batch(num_workers=num_workers) as env:
        np.testing.assert_array_equal(env.reset(), first)
        assert_equal_steps(play(env, actions), steps)
        assert env.state() == local.state()
        env.load_state(state)
        assert_equal_steps(play(env, actions[2:]), steps[2:])


def test_threads_end_with_the_batch():
    before = threading.active_count()
    with batch(num_workers=3) as env:
        env.reset()
        assert threading.active_count() > before
    assert threading.active_count() == before


# Simulators of one's own.


def other_simulator(topology: Topology, workload, plan: Plan, corrections) -> IterationResult:
    return simulate(topology, workload, plan, corrections)


def test_a_simulator_of_ones_own_is_asked_for_each_environment():
    """One that does what the engine does gives what compiled code gives."""
    actions = some_actions(2 * EPOCHS)
    own, compiled = batch(task(other_simulator), num_workers=2), batch()

    np.testing.assert_array_equal(own.reset(), compiled.reset())
    assert_equal_steps(play(own, actions), play(compiled, actions))
    assert own.state() == compiled.state()


def test_error_of_the_simulator_surfaces_and_the_batch_can_be_reset():
    """Only the first environment fails; afterwards all begin their next episode."""
    env, healthy = batch(task(failing_simulator)), batch()
    env.reset()
    actions = some_actions(1)[0]
    actions[0] = FATAL
    with pytest.raises(ArithmeticError, match="simulator: lost count"):
        env.step(actions)

    healthy.reset()
    np.testing.assert_array_equal(env.reset(), healthy.reset())


# Worlds.


def test_given_worlds_move_apart_in_each_environment():
    """Environments share the base figures, but not the draws around them."""
    law = Dynamics(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    pair = world("AB", {"AB": (1e9, 0.05), "BA": (1e9, 0.05)}, dynamics=law)
    observations = batch(dataclasses.replace(task(), world=GivenWorld(topology=pair))).reset()

    assert len({row.tobytes() for row in observations}) == NUM_ENVS
