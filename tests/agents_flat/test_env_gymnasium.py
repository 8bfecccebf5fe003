"""``EastWest/Placement-v0`` as Gymnasium and Stable-Baselines3 meet it, and bad arguments."""

import dataclasses
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from small_episodes import JOB, PAIR
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env as check_env_sb3
from strategies import ALLOWED_SCHEDULES, unit_domain, unit_workload, world

from agents.flat import env as placement_env
from agents.flat.env import PlacementEnv
from des import Topology, UniformLaw, UnreachableError, build_workload, read_topology, simulate
from des.worlds import EAST_CENTRAL_WEST

ID = "EastWest/Placement-v0"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"actions": "order_split"},
        {"num_domains": 1, "num_layers": 4},
        {"topology": PAIR, "workload": JOB},
        {"topology": read_topology(EAST_CENTRAL_WEST), "task_profile": "llama_70b"},
    ],
    ids=["defaults", "order_split", "one domain", "own world and job", "shipped world"],
)
def test_both_checkers_are_content(arguments):
    env = gymnasium.make(ID, render_mode="rgb_array", **arguments)

    check_env(env.unwrapped, skip_render_check=bool(arguments))
    check_env_sb3(env.unwrapped, skip_render_check=True)


def test_stable_baselines3_trains_on_it():
    env = gymnasium.make(ID, topology=PAIR, workload=JOB, epochs_per_episode=5)
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=16, n_epochs=2, device="cpu", seed=0)

    model.learn(total_timesteps=64)
    action, _ = model.predict(env.reset(seed=1)[0], deterministic=True)
    assert env.action_space.contains(action)


def test_defaults_are_as_documented():
    env = gymnasium.make(ID).unwrapped

    assert env.action_space == gymnasium.spaces.MultiDiscrete([3] * 96)
    assert env.observation_space == gymnasium.spaces.Box(0.0, 1.0, (21,), np.float32)
    assert env.task.workload == build_workload("llama_70b", num_layers=96)
    assert env.task.world.dynamics == UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    weights = env.task.weights
    assert (weights.time, weights.utilisation, weights.communication) == (0.4, 0.3, 0.3)
    assert env.task.simulator is simulate


def test_arguments_reach_the_task():
    env = gymnasium.make(
        ID, num_domains=4, num_layers=12, task_profile="llama2_7b", bandwidth_fluctuation=0.1
    ).unwrapped

    assert env.action_space == gymnasium.spaces.MultiDiscrete([4] * 12)
    assert env.observation_space.shape == (2 * 16 + 4,)
    assert env.task.workload == build_workload("llama2_7b", num_layers=12)
    assert env.task.world.dynamics.bandwidth_fluctuation == 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"topology": PAIR, "num_domains": 2},
            "num_domains must be left out where topology is given, got 2",
        ),
        (
            {"topology": PAIR, "bandwidth_fluctuation": 0.0},
            "bandwidth_fluctuation must be left out where topology is given, got 0.0",
        ),
        (
            {"workload": JOB, "task_profile": "llama2_7b"},
            "task_profile must be left out where workload is given, got 'llama2_7b'",
        ),
        (
            {"workload": JOB, "num_layers": 4},
            "num_layers must be left out where workload is given, got 4",
        ),
        ({"num_domains": 0}, "num_domains must be a whole number"),
        ({"num_layers": 0}, "num_layers must be a whole number"),
        ({"bandwidth_fluctuation": 1.0}, "bandwidth_fluctuation must be at least 0 and below 1"),
        ({"bandwidth_fluctuation": -0.1}, "bandwidth_fluctuation must be at least 0 and below 1"),
        ({"task_profile": "llama_71b"}, "model: must be one of .*llama_70b; got 'llama_71b'"),
        ({"schedule": "zb"}, f"{ALLOWED_SCHEDULES} 'zb'"),
        ({"actions": "both"}, "actions: must be one of per_layer, order_split; got 'both'"),
        ({"epochs_per_episode": 0}, "epochs_per_episode must be a whole number"),
        ({"render_mode": "human"}, "render_mode must be rgb_array or None, got 'human'"),
    ],
)
def test_arguments_that_contradict_or_are_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        PlacementEnv(**arguments)


def test_unknown_arguments_are_refused():
    with pytest.raises(TypeError, match="num_domain"):
        PlacementEnv(num_domain=3)


def test_topology_with_an_unreachable_pair_is_refused():
    one_way = world("AB", {"AB": (1.0, 0.0)})

    with pytest.raises(UnreachableError, match="no path of links joins B -> A"):
        PlacementEnv(topology=one_way, workload=JOB)


def test_import_registers_the_environment():
    assert gymnasium.spec(ID).entry_point == f"{placement_env.__name__}:PlacementEnv"


def test_more_domains_than_layers_are_fine():
    crowd = Topology.of(
        [unit_domain(name) for name in "ABC"],
        [
            dataclasses.replace(link, source=source, target=target)
            for source in "ABC"
            for target in "ABC"
            if source != target
            for link in PAIR.links[:1]
        ],
    )
    env = PlacementEnv(
        topology=crowd,
        workload=unit_workload([(1, 1)] * 2, num_microbatches=1),
        actions="per_layer",
    )
    observation, _ = env.reset(seed=0)

    assert observation[-3:].tolist() == [0.5, 0.5, 0.0]


def test_gymnasium_makes_an_environment_by_the_name_of_the_package_alone():
    """In a process that has not imported the package; torch is not loaded for it."""
    code = (
        "import sys, gymnasium; env = gymnasium.make('agents:EastWest/Placement-v0'); "
        "known = [each for each in gymnasium.registry if each.startswith('EastWest/')]; "
        "print(env.spec.id, 'torch' in sys.modules, *sorted(known))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    names = ("Autoscale", "Placement", "Queue", "Scheduling", "Spot")
    known = [f"EastWest/{name}-v0" for name in names]
    assert done.stdout.split() == ["EastWest/Placement-v0", "False", *known]
