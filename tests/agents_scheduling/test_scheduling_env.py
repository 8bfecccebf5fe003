"""``EastWest/Scheduling-v0`` as Gymnasium and Stable-Baselines3 meet it, and bad arguments."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from small_tasks import ID, NUM_EPOCHS, PAIR, RARE, few
from stable_baselines3 import DQN

from agents.decision.families import FAMILIES
from agents.decision.load import LoadLaw
from agents.decision.situation import TIME_ONLY
from agents.scheduling.env import SchedulingEnv, SchedulingVectorEnv
from agents.scheduling.plan_maker import REASONS
from agents.scheduling.sb3_vec_env import scheduling_vec_env
from agents.scheduling.task import FIRST_KNOWN
from des import DYNAMICS, LinkState, MarkovModulated, Topology, read_topology
from des.plan.replacement import Replacement
from scenarios.suites import suite


def test_a_choice_alone_is_discrete_in_every_form_of_the_environment():
    """Plan by plan as with arrays of one number; Stable-Baselines3's DQN learns by it."""
    task = few().variant("known", TIME_ONLY)
    size = 1 + task.num_known
    env, vector = gymnasium.make(ID, task=task), SchedulingVectorEnv(2, task=task)
    assert env.action_space == vector.single_action_space == gymnasium.spaces.Discrete(size)
    assert scheduling_vec_env(task, num_envs=2, seed=0).action_space == env.action_space

    env.reset(seed=3)
    vector.reset(seed=3)
    for choice in (1, 0, 2 % size):
        single = env.step(choice)
        both = vector.step(np.array([choice, 0]))
        assert single[1] == pytest.approx(both[1][0], rel=1e-6)
    DQN("MlpPolicy", env, learning_starts=2, device="cpu", seed=0).learn(8)


@pytest.mark.parametrize(
    ("arguments", "trainer", "iterations"),
    [({}, "megatron", 206), ({"trainer": "ideal"}, "ideal", 393)],
)
def test_defaults_are_as_documented(arguments, trainer, iterations):
    """Iterations are those of the quickest plan in 1,200 s: as bound, and of perfect devices."""
    env = gymnasium.make(ID, **arguments).unwrapped
    assert env.task.setting.trainer.name == trainer
    world = env.task.setting.world

    sizes = [10, *[5] * 4, *[4] * 4, *[3] * 4, 5, 1]
    assert env.action_space == gymnasium.spaces.MultiDiscrete(sizes)
    assert env.observation_space == gymnasium.spaces.Box(-10.0, 10.0, (85,), np.float32)
    assert world.workload.name == "llama2_7b"
    assert world.topology.domains == read_topology("four_uneven").domains
    assert world.topology.dynamics == DYNAMICS["markov_slow"]
    assert world.load == LoadLaw(low_factor=0.5, high_factor=1.0, dwell_epochs=8)
    assert (world.num_epochs, world.epoch_s, world.iterations_per_epoch) == (64, 1200.0, iterations)
    assert world.replacement == Replacement()
    assert (env.task.penalty, env.task.num_draws) == (0.1, None)


def test_info_has_the_figures_the_plan_and_its_family():
    env = SchedulingEnv(task=few())
    _, at_reset = env.reset(seed=0)
    action = np.zeros(env.action_space.shape, dtype=np.int64)
    action[0] = FIRST_KNOWN + 1
    _, reward, terminated, truncated, info = env.step(action)

    assert at_reset == {"plan": env.task.start.plan, "reference_s": env.task.reference_s}
    assert info["plan"] == env.plan == env.task.known[1].plan
    assert (info["family"], info["fallback"]) == (env.task.known[1].family, "")
    epoch_s = env.task.setting.world.epoch_s
    assert info["num_iterations"] == (epoch_s - info["change_s"]) / info["iteration_s"]
    assert reward == np.float32(info["num_iterations"] * (env.task.reference_s / epoch_s))
    assert (terminated, truncated) == (False, False)


def test_a_seed_or_a_draw_gives_the_same_episode():
    env = SchedulingEnv(task=few())
    first = env.reset(seed=3)[0]
    later = env.reset()[0]
    np.testing.assert_array_equal(env.reset(seed=3)[0], first)
    np.testing.assert_array_equal(env.reset()[0], later)
    drawn = env.reset(options={"draw_seed": 5})[0]
    np.testing.assert_array_equal(
        SchedulingEnv(task=few()).reset(options={"draw_seed": 5})[0], drawn
    )
    assert (first != drawn).any()


def test_episodes_end_after_the_epochs_of_the_world():
    env = SchedulingEnv(task=few())
    env.reset(seed=0)
    keep = np.zeros(env.action_space.shape, dtype=np.int64)
    assert [env.step(keep)[3] for _ in range(NUM_EPOCHS)] == [False] * (NUM_EPOCHS - 1) + [True]


# Many at once.


def test_the_vector_is_gymnasiums_own_of_single_environments():
    own = SyncVectorEnv([lambda: SchedulingEnv(task=few())] * 3, autoreset_mode="SameStep")
    ours = gymnasium.make_vec(ID, num_envs=3, task=few())
    assert isinstance(ours, SchedulingVectorEnv)
    assert (ours.observation_space, ours.action_space) == (own.observation_space, own.action_space)
    np.testing.assert_array_equal(ours.reset(seed=4)[0], own.reset(seed=4)[0])

    ours.action_space.seed(1)
    for _ in range(2 * NUM_EPOCHS + 1):
        actions = ours.action_space.sample()
        observations, rewards, terminated, truncated, infos = ours.step(actions)
        *arrays, of_own = own.step(actions)
        for mine, theirs in zip(
            (observations, rewards, terminated, truncated), arrays, strict=True
        ):
            np.testing.assert_array_equal(mine, theirs.astype(mine.dtype))
        shown, of_own = (each.get("final_info", each) for each in (infos, of_own))
        for name in ("iteration_s", "num_iterations", "change_s", "moved_bytes", "wan_bytes"):
            np.testing.assert_array_equal(shown[name], of_own[name])
        families = [FAMILIES[int(one)] for one in shown["family"]]
        reasons = [REASONS[int(one)] for one in shown["fallback"]]
        assert (families, reasons) == (list(of_own["family"]), list(of_own["fallback"]))


def test_the_vector_goes_on_without_a_seed_and_begins_again_with_it():
    env = SchedulingVectorEnv(2, task=few())
    first, second = env.reset(seed=8)[0], env.reset()[0]
    assert (first != second).any()
    np.testing.assert_array_equal(env.reset(seed=8)[0], first)
    with pytest.raises(ValueError, match="vector environment: options must be empty, got"):
        env.reset(options={"draw_seed": 1})


# What is refused.


def dying() -> MarkovModulated:
    states = (
        LinkState(name="up", bandwidth_factor=1.0, mean_dwell_s=9.0, followed_by=(("down", 1.0),)),
        LinkState(name="down", bandwidth_factor=0.0, mean_dwell_s=9.0, followed_by=(("up", 1.0),)),
    )
    return MarkovModulated(states=states)


def chain() -> Topology:
    whole = read_topology("four_uneven")
    return Topology.of(whole.domains, whole.links[1:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (RARE | {"period_steps": 0}, "period_steps must be a whole number"),
        ({"families": ("rings",)}, "families must be some of"),
        ({"schedules": ("zb_auto",)}, "schedules must hold one with a pace"),
        ({"schedules": ("1f1b", "zb_auto")}, "schedules must be ones with a pace, got 'zb_auto'"),
        ({"law": "storm"}, "law must be one of steady, .*; got 'storm'"),
        ({"law": dying()}, "the law must leave each link some bandwidth"),
        ({"network": "nowhere"}, "a topology must be a file"),
        ({"network": chain()}, "topology must have a link between every two domains"),
        ({"model": "llama"}, "model: must be one of"),
        (PAIR | {"num_microbatches": 4}, "num_microbatches must be left out where model is"),
        ({"num_epochs": 0}, "num_epochs must be a whole number"),
        ({"epoch_s": 0.0}, "epoch_s must be positive"),
        ({"num_known": -1}, "num_known must be a whole number"),
        ({"num_draws": 0}, "num_draws must be a whole number"),
        ({"actions": "some"}, "actions must be all or known, got 'some'"),
        (
            {"actions": "known", "num_known": 0},
            "num_known must be positive where actions are known",
        ),
        ({"penalty": -1.0}, "penalty must be finite and not negative"),
        ({"render_mode": "human"}, "render_mode must be None, got 'human'"),
        (
            {"world": suite("eval_held").world(1), "law": "ou"},
            "law must be left out where world is given, got law='ou'",
        ),
    ],
)
def test_arguments_that_contradict_or_are_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SchedulingEnv(**arguments)


def test_arguments_beside_a_task_are_refused():
    with pytest.raises(ValueError, match="num_known must be left out where task is given, got"):
        SchedulingEnv(task=few(), num_known=3)


def test_unknown_arguments_are_refused():
    with pytest.raises(TypeError, match="number_of_epochs"):
        SchedulingEnv(number_of_epochs=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda keep: keep.astype(float), "whole numbers shaped"),
        (lambda keep: keep[1:], "whole numbers shaped"),
        (lambda keep: keep - 1, r"component 0 of an action must be within \[0, 5\), got -1"),
    ],
)
def test_actions_outside_the_space_are_refused(change, message):
    env = SchedulingEnv(task=few())
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(change(np.zeros(len(few().action.sizes), dtype=np.int64)))


def test_steps_and_plans_before_a_reset_and_unknown_options_are_refused():
    env = SchedulingEnv(task=few())
    for use in (lambda: env.step(env.action_space.sample()), lambda: env.plan):
        with pytest.raises(RuntimeError, match="reset must be called first"):
            use()
    with pytest.raises(ValueError, match="options must be draw_seed alone, got"):
        env.reset(options={"draw": 1})
