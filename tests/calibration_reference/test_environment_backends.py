"""``EastWest/Placement-v0`` judged by ASTRA-sim: our engine, programs in its place, and ns-3's."""

import dataclasses
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from judged_worlds import (
    BACKENDS,
    FIRST,
    JOB,
    MOVING,
    PAIRED,
    SPREAD,
    STILL,
    arguments,
    make,
    measured,
    play,
)
from stable_baselines3.common.env_checker import check_env as check_env_sb3

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.env import make_task
from agents.flat.episode import Episode
from agents.flat.sb3_vec_env import PlacementSB3VecEnv
from calibration.measuring.environment import BINARIES_VARIABLE
from des import Placement
from des.base.random_numbers import derive_seed

ID = "EastWest/Placement-v0"


@pytest.fixture(autouse=True)
def _our_engine(monkeypatch):
    monkeypatch.delenv(BINARIES_VARIABLE, raising=False)


# What Gymnasium and Stable-Baselines3 demand; warnings are errors.


@pytest.mark.parametrize("actions", ["per_layer", "order_split"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_both_checkers_are_content(backend, actions):
    env = gymnasium.make(ID, **arguments(backend=backend, actions=actions))

    check_env(env.unwrapped, skip_render_check=True)
    check_env_sb3(env.unwrapped, skip_render_check=True)


# Figures.


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_microbatch_by_hand(backend):
    """9 s of passes and four messages of 0.3 s; nothing queues, and all links are equal.

    The first domain finishes after 10.2 s, of which it computes 3; the second one has delivered
    its gradient 2 s before that and the third one 4.3 s before it.
    """
    one = dataclasses.replace(JOB, num_microbatches=1)
    env = make(backend, topology=STILL, workload=one)
    _, at_reset = env.reset(seed=0)
    _, reward, *_, info = env.step(SPREAD)

    assert info["iteration_time_s"] == pytest.approx(10.2, abs=1e-7)
    assert info["communication_cost_cycles"] == pytest.approx((7.2 + 5.2 + 2.9) * 1e9, abs=100)
    assert info["utilisation"] == pytest.approx(9 / (3 * 10.2))
    assert info["bubble_fraction"] == pytest.approx(1 - 9 / (3 * 10.2))
    assert info["total_cycles"] == pytest.approx(10.2e9, abs=100)
    assert info["compute_cycles"] == 9e9
    assert info["communication_cycles"] == info["communication_cost_cycles"]
    assert info["communication_bytes"] == info["cross_domain_bytes"] == FIRST.bandwidth_bytes_per_s
    assert reward == pytest.approx(0.3 * 9 / (3 * 10.2) - 0.3)  # as long and as much as the base
    assert at_reset == {
        "baseline_iteration_time_s": info["iteration_time_s"],
        "baseline_communication_cost_cycles": info["communication_cost_cycles"],
    }


@pytest.mark.parametrize("backend", BACKENDS)
def test_rewards_come_from_what_is_measured_on_the_links_of_the_epoch(backend):
    """The base is the even split on the base links, in cycles of the same backend."""
    env = make(backend)
    env.reset(seed=3)
    episode = Episode(env.task)
    episode.begin(int(np.random.default_rng(3).integers(2**63)))
    base = measured(MOVING, backend, 0, 1, 2)
    base_cycles = sum(base.exposed_s) * 1e9

    times_s = []
    for _ in range(3):
        now = measured(episode.topology, backend, 1, 1, 2)
        episode.step(Placement(domain_of_layer=(1, 1, 2)))
        _, reward, *_, info = env.step(PAIRED)
        cycles = sum(now.exposed_s) * 1e9
        times_s.append(now.makespan_s)
        assert info["iteration_time_s"] == now.makespan_s
        assert info["communication_cost_cycles"] == pytest.approx(cycles, rel=1e-12)
        assert info["baseline_iteration_time_s"] == base.makespan_s
        assert info["baseline_communication_cost_cycles"] == pytest.approx(base_cycles, rel=1e-12)
        assert reward == pytest.approx(
            0.4 * (base.makespan_s - now.makespan_s) / base.makespan_s
            + 0.3 * 18 / (3 * now.makespan_s)
            - 0.3 * cycles / base_cycles
        )
    assert len(set(times_s)) == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_is_ever_counted_in_bytes(backend):
    env = make(backend)
    _, at_reset = env.reset(seed=0)
    info = env.step(SPREAD)[4]

    assert "communication_cost_cycles" in info
    assert not [name for name in (*info, *at_reset) if name.endswith("cost_bytes")]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_single_domain_waits_for_no_other(backend):
    env = make(backend)
    env.reset(seed=0)
    info = env.step(np.zeros(3, dtype=np.int64))[4]

    assert info["iteration_time_s"] == pytest.approx(18.0, abs=1e-7)
    assert info["communication_cost_cycles"] == 0.0
    assert info["num_stages"] == 1


@pytest.mark.parametrize("aggregation", ["min", "mean", "max", "harmonic"])
@pytest.mark.parametrize("backend", ["astra-unaware", "astra-aware"])
def test_links_become_one_in_the_way_that_is_asked_for(backend, aggregation):
    env = make(backend, backend_options={"network_aggregation": aggregation})
    _, at_reset = env.reset(seed=0)

    expected = measured(MOVING, backend, 0, 1, 2, aggregation=aggregation)
    assert at_reset["baseline_iteration_time_s"] == expected.makespan_s


def test_aggregations_differ_where_links_do_and_the_slowest_is_the_default():
    times_s = {}
    for aggregation in ("min", "max", "harmonic", None):
        options = {"network_aggregation": aggregation} if aggregation else None
        at_reset = make("astra-aware", backend_options=options).reset(seed=0)[1]
        times_s[aggregation] = at_reset["baseline_iteration_time_s"]

    assert times_s["min"] > times_s["harmonic"] > times_s["max"]
    assert times_s[None] == times_s["min"]


def test_pairwise_agrees_with_des_on_every_placement():
    """Both follow the same links of their own figures; cycles are whole nanoseconds."""
    ours, theirs = make("des"), make("astra-pairwise")
    for env in (ours, theirs):
        env.reset(seed=5)
    for action in (SPREAD, PAIRED, np.array([2, 0, 2])):
        one, other = ours.step(action)[4], theirs.step(action)[4]
        assert other["iteration_time_s"] == pytest.approx(one["iteration_time_s"], rel=1e-7)
        for name in ("utilisation", "bubble_fraction", "tokens_per_s"):
            assert other[name] == pytest.approx(one[name], rel=1e-6)
        for name in ("total_cycles", "compute_cycles", "communication_cycles"):
            assert other[name] == pytest.approx(one[name], rel=1e-6), name
        for name in ("num_stages", "fits_memory", "memory_overflow_fraction"):
            assert other[name] == one[name]
        for name in ("communication_bytes", "communication_gb", "cross_domain_bytes"):
            assert other[name] == one[name]
        for name in ("network_bandwidth_bytes_per_s", "network_latency_s"):
            assert other[name] == one[name]


@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_seeds_give_equal_episodes(backend):
    env = make(backend)
    first = play(env, 5)

    assert play(env, 5) == first
    assert play(make(backend), 5) == first
    assert play(env, 6) != first


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_batch_is_its_episodes_for_any_number_of_workers(backend):
    given = make_task(**arguments(backend=backend))
    actions = np.array([[SPREAD, PAIRED], [PAIRED, [0, 0, 1]]])
    batches = []
    for num_workers in (1, 2):
        with BatchedPlacementEnv(given, num_envs=2, seed=9, num_workers=num_workers) as batch:
            batches.append([batch.reset(), *(batch.step(each) for each in actions)])
    (first, *steps), (again, *same_steps) = batches

    np.testing.assert_array_equal(first, again)
    for step, same in zip(steps, same_steps, strict=True):
        np.testing.assert_equal(dataclasses.asdict(same), dataclasses.asdict(step))
    for position in range(2):
        episode = Episode(given)
        seat_seed = derive_seed(9, position, 0)
        observation = episode.begin(int(derive_seed(seat_seed, 0, 0)))
        np.testing.assert_array_equal(first[position], observation)
        for action, step in zip(actions, steps, strict=True):
            alone = episode.step(given.codec.decode(action[position].tolist()))
            assert step.rewards[position] == np.float32(alone.reward)
            assert alone.metrics == {name: step.metrics[name][position] for name in step.metrics}


@pytest.mark.parametrize("backend", BACKENDS)
def test_make_vec_takes_a_backend(backend):
    env = gymnasium.make_vec(ID, num_envs=2, **arguments(backend=backend))
    env.reset(seed=1)
    infos = env.step(np.stack([SPREAD, PAIRED]))[4]

    assert infos["communication_cost_cycles"].shape == (2,)
    assert (infos["communication_cost_cycles"] > 0).all()
    assert "communication_cost_bytes" not in infos
    env.close()


def test_stable_baselines3_takes_a_task_with_a_backend():
    env = PlacementSB3VecEnv(make_task(**arguments(backend="astra-aware")), num_envs=2, seed=0)
    env.reset()
    env.step(np.stack([SPREAD, PAIRED]))

    assert (env.metrics["communication_cost_cycles"] > 0).all()
    env.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_tasks_go_to_other_processes_and_differ_by_their_backends(backend):
    given = make_task(**arguments(backend=backend))
    there = pickle.loads(pickle.dumps(given))

    assert there == given
    assert there.fingerprint() == given.fingerprint()
    others = [make_task(**arguments(backend=name)) for name in ("des", *BACKENDS)]
    assert [other.fingerprint() for other in others].count(given.fingerprint()) == 1


def test_des_by_name_is_the_default_in_compiled_code():
    with (
        BatchedPlacementEnv(make_task(**arguments()), num_envs=2, seed=4) as default,
        BatchedPlacementEnv(make_task(**arguments(backend="des")), num_envs=2, seed=4) as named,
    ):
        np.testing.assert_array_equal(named.reset(), default.reset())
        actions = np.stack([SPREAD, PAIRED])
        one, other = default.step(actions), named.step(actions)
        assert named.bytes_per_env == default.bytes_per_env is not None
        np.testing.assert_equal(dataclasses.asdict(other), dataclasses.asdict(one))
