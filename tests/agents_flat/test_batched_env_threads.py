"""The batch on several threads, and simulators of users in it."""

import dataclasses
import threading

import numpy as np
import pytest
from batched_tasks import EPOCHS, NUM_ENVS, assert_equal_steps, batch, play, some_actions, task
from strategies import world

from agents.flat.worlds import GivenWorld
from des import IterationResult, Plan, Topology, UniformLaw, simulate

FATAL = (1, 1, 1, 1)
"""The placement on which the simulator of this module fails."""


def failing_simulator(topology: Topology, workload, plan: Plan, corrections) -> IterationResult:
    if plan.placement.domain_of_layer == FATAL:
        raise ArithmeticError("simulator: lost count")
    return simulate(topology, workload, plan, corrections)


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


def test_given_worlds_move_apart_in_each_environment():
    """Environments share the base figures, but not the draws around them."""
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    pair = world("AB", {"AB": (1e9, 0.05), "BA": (1e9, 0.05)}, dynamics=law)
    observations = batch(dataclasses.replace(task(), world=GivenWorld(topology=pair))).reset()

    assert len({row.tobytes() for row in observations}) == NUM_ENVS
