"""``EastWest/Placement-v0``: episodes, observations and steps."""

import gymnasium
import numpy as np
import pytest
from small_episodes import JOB, PAIR
from strategies import unit_workload

from agents.flat.env import PlacementEnv
from des import Corrections, read_topology, simulate
from des.plan.replacement import Replacement
from des.worlds import EAST_CENTRAL_WEST


def small(**changes: object) -> PlacementEnv:
    """Four unit layers on two domains with moving links, three epochs."""
    arguments = {"topology": PAIR, "workload": JOB, "epochs_per_episode": 3, **changes}
    return PlacementEnv(**arguments)


def play(env: PlacementEnv, seed: int | None, num_episodes: int) -> list[list[float]]:
    """Observations, rewards and ends of some episodes under actions that do not depend on them."""
    actions = np.random.default_rng(0)
    rows = []
    for episode in range(num_episodes):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        rows.append(observation.tolist())
        ended = False
        while not ended:
            action = actions.integers(env.action_space.nvec)
            observation, reward, terminated, truncated, _ = env.step(action)
            ended = terminated or truncated
            rows.append([*observation.tolist(), reward, ended])
    return rows


def test_compact_actions_are_order_and_split_points():
    env = small(actions="order_split")
    env.reset(seed=0)

    assert env.action_space == gymnasium.spaces.MultiDiscrete([2, 5])
    assert env.step(np.array([1, 3]))[4]["domain_of_layer"] == (1, 1, 1, 0)


# Worlds.


def test_each_reset_draws_links_within_the_stated_bounds():
    """Without fluctuation the observation shows the drawn figures, but for the latency jitter."""
    env = PlacementEnv(num_domains=3, num_layers=6, bandwidth_fluctuation=0.0)
    (model, *_) = read_topology(EAST_CENTRAL_WEST).domains
    apart = ~np.eye(3, dtype=bool)

    seen = set()
    for episode in range(20):
        observation, _ = env.reset(seed=4 if episode == 0 else None)
        bandwidth = observation[:9].reshape(3, 3) * model.intra_bandwidth_bytes_per_s
        latency = observation[9:18].reshape(3, 3) * 0.100 * 1.2
        np.testing.assert_array_equal(bandwidth, bandwidth.T)
        assert bandwidth[apart].min() >= 2e9 / 8 * (1 - 1e-6)
        assert bandwidth[apart].max() <= 5e9 / 8 * (1 + 1e-6)
        assert latency[apart].min() >= 0.020 * 0.8 * (1 - 1e-6)
        assert latency[apart].max() <= 0.100 * 1.2 * (1 + 1e-6)
        seen.add(tuple(bandwidth[apart].tolist()))
    assert len(seen) == 20


def test_links_move_from_epoch_to_epoch_within_an_episode():
    rows = play(PlacementEnv(num_domains=2, num_layers=4, epochs_per_episode=4), 0, 1)

    assert len({tuple(row[:8]) for row in rows}) == 5
    assert len({(row[0], row[3]) for row in rows}) == 1  # inside the domains nothing moves


# Randomness and ends.


def test_equal_seeds_give_equal_episodes():
    assert play(small(), 5, 3) == play(small(), 5, 3)


def test_reset_with_a_seed_resets_on_a_used_environment():
    env = small()
    first = play(env, 5, 2)
    play(env, 6, 1)

    assert play(env, 5, 2) == first


def test_different_seeds_and_further_episodes_differ():
    env = small()
    beginnings = [tuple(env.reset(seed=seed)[0].tolist()) for seed in (1, 2, 3)]
    beginnings += [tuple(env.reset()[0].tolist()) for _ in range(3)]

    assert len(set(beginnings)) == 6


def test_reset_in_the_middle_of_an_episode_begins_the_next():
    env = small()
    env.reset(seed=1)
    straight = env.reset()[0]
    env.reset(seed=1)
    env.step(np.zeros(4, dtype=np.int64))

    np.testing.assert_array_equal(env.reset()[0], straight)


def test_what_is_placed_does_not_change_how_links_move():
    seen = []
    for domain in (0, 1):
        env = small()
        env.reset(seed=9)
        observations = [env.step(np.full(4, domain))[0] for _ in range(3)]
        seen.append([observation[:8].tolist() for observation in observations])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("epochs_per_episode", [1, 3])
def test_episodes_are_truncated_and_never_terminate(epochs_per_episode):
    env = small(epochs_per_episode=epochs_per_episode)
    for _ in range(2):
        env.reset(seed=0)
        steps = [env.step(np.zeros(4, dtype=np.int64)) for _ in range(epochs_per_episode)]
        assert not any(terminated for _, _, terminated, _, _ in steps)
        truncations = [truncated for _, _, _, truncated, _ in steps]
        assert truncations == [False] * (epochs_per_episode - 1) + [True]


# Observations and figures.


def test_observation_ends_with_the_shares_of_the_last_placement():
    env = small()
    observation, _ = env.reset(seed=0)
    assert observation[8:].tolist() == [0.5, 0.5]

    assert env.step(np.array([0, 1, 1, 1]))[0][8:].tolist() == [0.25, 0.75]
    assert env.step(np.array([0, 0, 0, 0]))[0][8:].tolist() == [1.0, 0.0]
    assert env.reset()[0][8:].tolist() == [0.5, 0.5]


def test_step_judges_the_links_that_the_observation_showed():
    """One layer on each of A and B, one microbatch: all times follow from the observation."""
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=1, message_bytes=4.0)
    env = small(workload=workload)
    observation, _ = env.reset(seed=2)
    for _ in range(3):
        bandwidths, latencies = observation[[1, 2]] * 8 * 1.25, observation[[5, 6]] * 0.5 * 1.5
        observation, *_, info = env.step(np.array([0, 1]))
        expected_s = 6 + (4 / bandwidths + latencies).sum()
        assert info["iteration_time_s"] == pytest.approx(expected_s, rel=1e-5)


def test_info_holds_every_figure_of_the_epoch_with_its_unit():
    env = small()
    _, at_reset = env.reset(seed=0)
    _, reward, _, _, info = env.step(np.array([0, 0, 1, 1]))

    assert info["domain_of_layer"] == (0, 0, 1, 1)
    assert info.keys() == {
        "domain_of_layer",
        "iteration_time_s",
        "utilisation",
        "communication_cost_bytes",
        "bubble_fraction",
        "tokens_per_s",
        "num_stages",
        "fits_memory",
        "memory_overflow_fraction",
        "migration_s",
        "moved_bytes",
        "total_cycles",
        "compute_cycles",
        "communication_cycles",
        "communication_bytes",
        "communication_gb",
        "cross_domain_bytes",
        "network_bandwidth_bytes_per_s",
        "network_latency_s",
        *at_reset,
    }
    assert at_reset["baseline_communication_cost_bytes"] == 2 * 2 * 4
    for name, value in at_reset.items():
        assert info[name] == value
    base_s = info["baseline_iteration_time_s"]
    time_gain = (base_s - info["iteration_time_s"]) / base_s
    assert reward == pytest.approx(0.4 * time_gain + 0.3 * info["utilisation"] - 0.3)


def test_a_simulator_of_ones_own_is_the_one_asked():
    def slow(topology, workload, plan, corrections):
        return simulate(topology, workload, plan, Corrections(compute_time_factor=8.0))

    both = []
    for changes in ({"simulator": slow}, {"corrections": Corrections(compute_time_factor=8.0)}):
        env = small(**changes)
        env.reset(seed=0)
        both.append(env.step(np.zeros(4, dtype=np.int64))[4])
    assert both[0] == both[1]
    assert both[0]["iteration_time_s"] == 8 * 2 * 4 * 3


def test_changes_that_cost_something_and_epochs_of_several_iterations():
    """Nothing but the share of the restart is added to the iteration time."""
    free = small(iterations_per_epoch=4)
    costly = small(iterations_per_epoch=4, replacement=Replacement(restart_s=8.0, pays_bytes=False))
    pairs = []
    for env in (free, costly):
        env.reset(seed=0)
        pairs.append([env.step(np.array([0, 1, 1, 1]))[4] for _ in range(2)])

    for without, with_costs, restart_s in zip(*pairs, (8.0, 0.0), strict=True):
        assert with_costs["migration_s"] == restart_s
        assert without["migration_s"] == 0.0
        assert with_costs["iteration_time_s"] == pytest.approx(
            without["iteration_time_s"] + restart_s / 4
        )


# Pictures.


def test_render_draws_the_last_iteration():
    env = small(render_mode="rgb_array")
    env.reset(seed=0)
    uniform = env.render()
    env.step(np.array([0, 0, 1, 1]))
    same = env.render()
    env.step(np.array([1, 0, 1, 0]))
    other = env.render()

    assert uniform.shape == other.shape == (675, 1200, 3)
    assert uniform.dtype == other.dtype == np.uint8
    np.testing.assert_array_equal(uniform, same)  # the first step was the uniform plan
    assert (same != other).any()


def test_nothing_is_drawn_unless_asked_for():
    env = small()
    env.reset(seed=0)
    assert env.render() is None


@pytest.mark.parametrize(
    "action",
    [[0, 0, 0], [0, 0, 0, 2], [0, 0, 0, -1], [[0, 0, 0, 0]], 0, [0.0, 0.0, 0.0, 0.7]],
    ids=["too short", "no such domain", "negative", "nested", "scalar", "fraction"],
)
def test_invalid_actions_are_refused(action):
    env = small()
    env.reset(seed=0)

    with pytest.raises(ValueError, match="environment: action must lie in MultiDiscrete"):
        env.step(np.array(action))
