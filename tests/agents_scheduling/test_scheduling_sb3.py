"""Stable-Baselines3 on the scheduling task: as the page on the environment shows it."""

import re
from pathlib import Path

import numpy as np
from small_tasks import NUM_EPOCHS, few, some_actions

from agents.scheduling.env import seeded_batch
from agents.scheduling.sb3_vec_env import scheduling_vec_env

PAGE = Path(__file__).resolve().parents[2] / "docs" / "environments.md"


def test_steps_are_those_of_the_batch():
    task, rng = few(), np.random.default_rng(0)
    env, batch = scheduling_vec_env(task, num_envs=2, seed=5), seeded_batch(task, 2, 5)
    np.testing.assert_array_equal(env.reset(), batch.reset())

    returns = np.zeros(2)
    for _ in range(NUM_EPOCHS):
        actions = some_actions(task, 2, rng)
        observations, rewards, ended, infos = env.step(actions)
        step = batch.step(actions)
        returns += step.rewards
        np.testing.assert_array_equal(observations, step.observations)
        np.testing.assert_array_equal(rewards, step.rewards)
    assert ended.all()
    assert [info["episode"] for info in infos] == [{"r": each, "l": NUM_EPOCHS} for each in returns]


def test_the_example_of_the_page_runs(capsys):
    """With short episodes, and a few steps in place of many thousand."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    (block,) = (one for one in blocks if one.startswith("from stable_baselines3"))
    changes = {
        "200_000": "64",
        "=128": "=2, num_epochs=8",
        "=32": "=2",
        "=512": "=64",
        "+ 64": "+ 2",
    }
    for long, short in changes.items():
        assert block.count(long) == 1
        block = block.replace(long, short)

    exec(compile(block, str(PAGE), "exec"), {})

    assert re.fullmatch(r"-?\d+\.\d %\n", capsys.readouterr().out)
