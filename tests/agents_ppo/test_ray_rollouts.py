"""Rollouts by actors of Ray against the same ones in this process, and actors that get lost."""

import importlib.util
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import ray_walks
import torch
from processes import FAILSAFE_S, with_time_enough
from ray_walks import SEED, Deadly, Holder, Mixed, Placing, Walks, actor_processes

from agents.flat.recalibration import corrections_of, recalibrate
from agents.ppo.checkpoint import save_checkpoint
from agents.ppo.networks import ActorCritic, NetworkArchitecture
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.rollout import Rollout, RolloutSource
from agents.ppo.rollout_source import LocalRollouts
from agents.ppo.trainer import PPOTrainer
from des import NO_CORRECTIONS, Corrections

if importlib.util.find_spec("ray") is None:
    pytest.skip("the extra ray is not installed", allow_module_level=True)

import ray

from agents.ppo.ray_rollouts import RayRollouts
from scenarios.frame.ray_session import ray_session

NUM_WORKERS, NUM_STEPS = 3, 8
PPO = PPOConfig(num_steps=NUM_STEPS, num_minibatches=2, num_epochs=2, hidden_sizes=(8,))
FACTORS = Corrections(compute_time_factor=1.3, wan_bandwidth_factor=0.6, message_overhead_s=0.003)


@pytest.fixture(scope="module", autouse=True)
def _ray_of_three_cpus() -> Iterator[None]:
    ray.cloudpickle.register_pickle_by_value(ray_walks)  # actors cannot import tests
    with ray_session("local", num_cpus=3):
        yield
    ray.cloudpickle.unregister_pickle_by_value(ray_walks)


def on_ray(walks: Walks | Placing, num_actors: int = 1, **options: Any) -> RayRollouts:
    patient = {"timeout_s": FAILSAFE_S, "start_timeout_s": FAILSAFE_S}
    options = {"num_workers": NUM_WORKERS} | patient | options
    return RayRollouts(walks, seed=SEED, num_actors=num_actors, **options)


def here(walks: Walks | Placing, num_workers: int = NUM_WORKERS) -> LocalRollouts:
    return LocalRollouts([walks(worker) for worker in range(num_workers)], seed=SEED)


def some_network() -> ActorCritic:
    architecture = NetworkArchitecture(
        observation_size=2, action_sizes=(3,), ordinal_starts=(None,), hidden_sizes=(8,)
    )
    return ActorCritic(architecture, torch.Generator().manual_seed(0))


def bytes_after(rollouts: RolloutSource, path: Path, num_updates: int = 4) -> bytes:
    """Checkpoint of a training of that many updates."""
    trainer = PPOTrainer(rollouts, PPO, SEED, total_steps=10_000)
    for _ in range(num_updates):
        trainer.update()
    save_checkpoint(path, trainer.state())
    return path.read_bytes()


def assert_equal_rollouts(some: RolloutSource, other: RolloutSource) -> None:
    network = some_network()
    pairs = zip(some.collect(network, NUM_STEPS), other.collect(network, NUM_STEPS), strict=True)
    for one, another in pairs:
        for field in fields(Rollout):
            ours, theirs = getattr(one, field.name), getattr(another, field.name)
            if isinstance(ours, torch.Tensor):
                assert torch.equal(ours, theirs), field.name
                assert ours.dtype == theirs.dtype
    assert str(some.state()) == str(other.state())


@pytest.fixture(scope="module")
def one_actor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Walks, RayRollouts]]:
    """Walks of three workers by one actor, whose process takes seconds to start."""
    walks = Walks(folder=tmp_path_factory.mktemp("walks"))
    with closing(on_ray(walks)) as rollouts:
        yield walks, rollouts


@pytest.fixture
def begun(one_actor: tuple[Walks, RayRollouts]) -> tuple[Walks, RayRollouts]:
    """The same where they begin."""
    walks, rollouts = one_actor
    rollouts.load_state(here(walks).state())
    return walks, rollouts


def test_results_of_one_actor_are_those_of_this_process(begun, tmp_path):
    """To the last bit of a training's checkpoint, so also of every state and rollout in it."""
    walks, rollouts = begun

    assert rollouts.num_envs == NUM_WORKERS * 2
    assert bytes_after(rollouts, tmp_path / "ray.safetensors") == bytes_after(
        here(walks), tmp_path / "here.safetensors"
    )


def test_actors_that_are_killed_or_hang_cost_nothing_but_their_rollout(tmp_path):
    """Of two, one dies in the middle of a rollout, then both between two; then one hangs."""
    walks = Walks(folder=tmp_path)
    expected = bytes_after(here(walks), tmp_path / "here.safetensors")
    kill, hang = tmp_path / f"1-kill-{NUM_STEPS + 3}", tmp_path / f"2-hang-{3 * NUM_STEPS + 1}"
    for trouble in (kill, hang):
        trouble.touch()

    with closing(on_ray(walks, num_actors=2, timeout_s=2.5, max_losses=1000)) as rollouts:
        trainer = PPOTrainer(rollouts, PPO, SEED, total_steps=10_000)
        trainer.update()
        assert kill.exists()
        trainer.update()
        assert not kill.exists()
        for process in actor_processes(tmp_path):
            os.kill(process, signal.SIGKILL)
        trainer.update()
        assert hang.exists()
        trainer.update()
        assert not hang.exists()
        save_checkpoint(tmp_path / "ray.safetensors", trainer.state())

    assert (tmp_path / "ray.safetensors").read_bytes() == expected


def test_actors_that_die_again_and_again_are_an_error(tmp_path):
    """Worker 1 is deadly however often it is tried; the others do not count as progress for it."""
    with (
        closing(on_ray(Deadly(folder=tmp_path), max_losses=1)) as rollouts,
        pytest.raises(RuntimeError, match="2 actors were lost in a row, and nothing was done"),
    ):
        rollouts.collect(some_network(), NUM_STEPS)


def test_an_error_of_an_environment_is_raised_once_and_changes_nothing(begun):
    walks, rollouts = begun
    trouble = walks.folder / "1-fail-3"
    trouble.touch()
    before = str(rollouts.state())
    with pytest.raises(ArithmeticError, match="walk: lost its way") as caught:
        rollouts.collect(some_network(), NUM_STEPS)
    assert str(caught.value) == "walk: lost its way"
    assert "_meet_trouble" in caught.value.__notes__[0]
    assert trouble.read_text() == "x"
    assert str(rollouts.state()) == before
    trouble.unlink()
    assert_equal_rollouts(rollouts, here(walks))


def test_stragglers_stop_early_and_training_goes_on(tmp_path):
    """Worker 1 sleeps in each step; worker 0 does not, and is all that is waited for.

    On a busy machine it has to sleep for long to be the slower one.
    """

    def steps_of_updates(step_s: float) -> list[int]:
        walks = Walks(folder=tmp_path, slow=(1,), step_s=step_s)
        with closing(on_ray(walks, num_actors=2, num_workers=2, preempt_share=0.5)) as rollouts:
            trainer = PPOTrainer(rollouts, PPO, SEED, total_steps=10_000)
            steps = [trainer.update().rollout_steps for _ in range(2)]
            assert trainer.step_count == sum(steps)
        return steps

    steps = with_time_enough(steps_of_updates, lambda steps: max(steps) < 4 * NUM_STEPS, (0.3, 5.0))

    assert all(2 * (NUM_STEPS + 2) <= num < 2 * 2 * NUM_STEPS for num in steps)


def test_who_has_not_begun_when_enough_are_done_does_a_quarter(tmp_path):
    """One actor does one worker after the other, so here nothing depends on timing."""
    with closing(on_ray(Walks(folder=tmp_path), preempt_share=0.6)) as rollouts:
        some = rollouts.collect(some_network(), NUM_STEPS)
        assert [len(rollout.rewards) for rollout in some] == [NUM_STEPS, NUM_STEPS, NUM_STEPS // 4]


def test_a_training_can_go_on_elsewhere(begun):
    walks, rollouts = begun
    local = here(walks)
    local.collect(some_network(), NUM_STEPS)
    rollouts.load_state(local.state())
    for ours, theirs in zip(rollouts.first_moments(), local.first_moments(), strict=True):
        assert torch.equal(ours.mean, theirs.mean)
    assert_equal_rollouts(rollouts, local)
    with pytest.raises(ValueError, match="state must be of 3 workers, got 2"):
        rollouts.load_state({"workers": local.state()["workers"][:2]})
    other = here(walks)
    other.load_state(rollouts.state())
    assert_equal_rollouts(other, rollouts)


def test_environments_without_factors_are_refused_on_ray(begun):
    _, rollouts = begun
    with pytest.raises(
        ValueError, match="of worker 0 must have corrections in its state, got plac"
    ):
        recalibrate(rollouts, FACTORS)


@pytest.mark.usefixtures("one_actor")
def test_without_a_free_cpu_no_actor_starts(tmp_path):
    holder = ray.remote(num_cpus=2)(Holder).remote()
    assert ray.get(holder.is_there.remote())
    with pytest.raises(RuntimeError, match="no actor has started within 1 s; each needs a CPU"):
        on_ray(Walks(folder=tmp_path), start_timeout_s=1.0)
    ray.kill(holder)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"num_workers": 0}, "num_workers must be a whole number from 1"),
        ({"num_actors": 4}, "num_actors must be a whole number from 1 to 3"),
        ({"preempt_share": 0.0}, "preempt_share must be above 0 and at most 1"),
        ({"max_losses": 0}, "max_losses must be a whole number from 1"),
        ({"timeout_s": 0.0}, "timeout_s must be positive"),
        ({"start_timeout_s": -1.0}, "start_timeout_s must be positive"),
    ],
)
def test_options_out_of_range_are_refused(options, complaint, tmp_path):
    with pytest.raises(ValueError, match=f"rollouts on Ray: {complaint}"):
        on_ray(Walks(folder=tmp_path), **options)


def test_environments_must_be_of_one_kind(tmp_path):
    with pytest.raises(ValueError, match="environment of worker 1 must have the sizes"):
        on_ray(Mixed(folder=tmp_path))


def recalibrated_bytes(rollouts: RolloutSource, folder: Path, *, is_remote: bool = False) -> bytes:
    """Checkpoint of a training under other factors from the third update on.

    With ``is_remote``, the factors in force are set once more before the second update, and all
    actors are killed after they have changed.
    """
    trainer = PPOTrainer(rollouts, PPO, SEED, total_steps=10_000)
    trainer.update()
    if is_remote:
        recalibrate(rollouts, NO_CORRECTIONS)
    assert corrections_of(rollouts) == NO_CORRECTIONS
    trainer.update()
    recalibrate(rollouts, FACTORS)
    for process in actor_processes(folder) if is_remote else []:
        os.kill(process, signal.SIGKILL)
    assert corrections_of(rollouts) == FACTORS
    for _ in range(2):
        trainer.update()
    save_checkpoint(folder / "run.safetensors", trainer.state())
    return (folder / "run.safetensors").read_bytes()


def test_recalibrated_actors_train_as_this_process_does(tmp_path):
    """Also where actors are lost afterwards; the factors in force change nothing.

    New actors make environments of the task as built, and have the factors from the state.
    """
    folders = [tmp_path / name for name in ("here", "never", "ray")]
    for folder in folders:
        folder.mkdir()
    local, never, remote = (Placing(folder=folder) for folder in folders)
    expected = recalibrated_bytes(here(local), local.folder)
    assert expected != bytes_after(here(never), never.folder / "run.safetensors")

    with closing(on_ray(remote, num_actors=2)) as rollouts:
        assert recalibrated_bytes(rollouts, remote.folder, is_remote=True) == expected
        assert 1 <= len(actor_processes(remote.folder)) <= 2  # one may start too late
    assert len([*remote.folder.glob("pid-*")]) > 1
