"""Steps per second of learning from end to end: policy, environment, advantages, optimisation."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.env import PlacementEnv
from agents.flat.sb3_vec_env import PlacementSB3VecEnv
from agents.flat.task import PlacementTask
from agents.ppo.devices import keep_freed_memory, use_torch_threads
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.trainer import PPOTrainer
from bench.report import Section, Table, column
from bench.tasks import placement_task
from bench.timing import Contestant, Effort, Timing, race, speed_ratio
from bench.worlds import SEED, SIZES, SMALL, Size

NUM_STEPS, NUM_MINIBATCHES, NUM_EPOCHS = 32, 4, 4
NUM_ENVS, NUM_ENVS_ONE_BY_ONE = 1024, 16
NUM_CORES = 2
THREADS = {1: "1 thread", 2: "2 threads"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Widths of the hidden layers for a size, and the steps per second aimed at."""

    hidden_sizes: tuple[int, ...]
    target_per_s: float | None


NETWORKS = {
    SIZES[0]: Network(hidden_sizes=(64, 64), target_per_s=190e3),
    SIZES[1]: Network(hidden_sizes=(64, 64), target_per_s=110e3),
    SIZES[2]: Network(hidden_sizes=(128, 128), target_per_s=35e3),
    SMALL[0]: Network(hidden_sizes=(8,), target_per_s=None),
}
SB3_TARGET_PER_S = 60e3


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRow:
    """One way to learn on one size."""

    size: str = column("domains and microbatches")
    hidden: str = column("hidden layers")
    learner: str = column("learner")
    steps_per_s: float = column("steps/s", ",.0f")
    target_per_s: float | None = column("target", ",.0f")
    steps_per_cpu_s: float = column("per CPU second", ",.0f")
    ratio: float = column("x the slowest", ",.0f")
    spread_percent: float = column("± %", ".0f")


def measure(effort: Effort) -> Section:
    """Time PPO of ours and of Stable-Baselines3 on the same task, in turn."""
    keep_freed_memory()
    use_torch_threads(1)
    sizes = SMALL if effort.is_quick else SIZES
    rows = [row for size in sizes for row in _rows(size, effort)]
    state = "installed, and not measured" if find_spec("pufferlib") else "not installed"
    return Section(
        name="learning",
        tables=[Table(title="Learning, links drawn once an epoch, order_split", rows=rows)],
        notes=[
            f"SB3 is Stable-Baselines3. Rollouts of {NUM_STEPS} steps, {NUM_EPOCHS} epochs of "
            f"{NUM_MINIBATCHES} minibatches. "
            f"One by one: {NUM_ENVS_ONE_BY_ONE} of our single environments in DummyVecEnv; the "
            f"other batches have {NUM_ENVS}. Threads are those of the environment; torch has one. "
            f"PufferLib: {state}."
        ],
    )


def _rows(size: Size, effort: Effort) -> list[LearningRow]:
    task, network = placement_task(size, "drawn"), NETWORKS[size]
    num_slow, num_fast = (2, 4) if effort.is_quick else (NUM_ENVS_ONE_BY_ONE, NUM_ENVS)
    single = DummyVecEnv([_maker(task) for _ in range(num_slow)])
    entries: list[tuple[Contestant, float | None]] = [
        (_sb3("SB3, one by one", single, network), None)
    ]
    for num_threads, text in THREADS.items():
        batch = PlacementSB3VecEnv(task, num_envs=num_fast, seed=SEED, num_workers=num_threads)
        is_aimed_at = num_threads == NUM_CORES
        entries += [
            (
                _sb3(f"SB3, our batch, {text}", batch, network),
                SB3_TARGET_PER_S if is_aimed_at and size == SIZES[0] else None,
            ),
            (
                _ours(f"ours, {text}", task, num_fast, network, num_threads),
                network.target_per_s if is_aimed_at else None,
            ),
        ]
    timings = race([contestant for contestant, _ in entries], effort)
    return [
        _row(size, timing, timings[0], target_per_s)
        for timing, (_, target_per_s) in zip(timings, entries, strict=True)
    ]


def _maker(task: PlacementTask) -> Callable[[], PlacementEnv]:
    """Return what makes a single environment of a task on a given world."""
    world = task.world.world(SEED)
    return lambda: PlacementEnv(topology=world, workload=task.workload, actions=task.actions)


def _sb3(name: str, environment: VecEnv, network: Network) -> Contestant:
    rollout_steps = NUM_STEPS * environment.num_envs
    model = PPO(
        "MlpPolicy",
        environment,
        n_steps=NUM_STEPS,
        batch_size=rollout_steps // NUM_MINIBATCHES,
        n_epochs=NUM_EPOCHS,
        gamma=0.0,
        policy_kwargs={"net_arch": list(network.hidden_sizes)},
        device="cpu",
        seed=SEED,
    )
    model.set_logger(Logger(folder=None, output_formats=[]))  # else one folder per call

    def learn() -> None:
        model.learn(total_timesteps=rollout_steps, reset_num_timesteps=False)

    return Contestant(name=name, call=learn, num_items=rollout_steps)


def _ours(
    name: str, task: PlacementTask, num_envs: int, network: Network, num_threads: int
) -> Contestant:
    config = PPOConfig(
        num_steps=NUM_STEPS,
        num_minibatches=NUM_MINIBATCHES,
        num_epochs=NUM_EPOCHS,
        hidden_sizes=network.hidden_sizes,
    )
    environment = BatchedPlacementEnv(task, num_envs=num_envs, seed=SEED, num_workers=num_threads)
    trainer = PPOTrainer.local(environment, config, SEED, total_steps=2**62)

    return Contestant(name=name, call=trainer.update, num_items=trainer.steps_per_update)


def _row(size: Size, timing: Timing, slowest: Timing, target_per_s: float | None) -> LearningRow:
    hidden_sizes = NETWORKS[size].hidden_sizes
    return LearningRow(
        size=f"K{size.num_stages} M{size.num_microbatches}",
        hidden=" x ".join(map(str, hidden_sizes)),
        learner=timing.name,
        steps_per_s=timing.items_per_s,
        target_per_s=target_per_s,
        steps_per_cpu_s=timing.items_per_cpu_s,
        ratio=speed_ratio(timing, slowest),
        spread_percent=1e2 * timing.spread_fraction,
    )
