"""Environments that actors of Ray make: walkers that get into trouble, and placements."""

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.task import PlacementTask
from agents.flat.worlds import DrawnWorld
from agents.ppo.batch_step import BatchStep
from agents.ppo.rollout_source import environment_seed
from des import UniformLaw, build_workload

SEED = 5


class Walk:
    """Two walkers on a line that go where their actions tell them, and start again now and then.

    ``folder`` has a file for each process that they walk in. A file there such as ``1-kill-3`` is
    trouble to come: the third step of logical worker 1 kills its process, once; ``hang`` stops it
    for good, once; ``fail`` raises an error and counts how often.
    """

    num_envs = 2
    observation_size = 2
    action_sizes = (3,)
    ordinal_starts = (None,)

    def __init__(self, folder: Path, worker: int, step_s: float) -> None:
        self._folder, self._worker, self._step_s = folder, worker, step_s
        self._places, self._count = np.zeros(2), 0
        (folder / f"pid-{os.getpid()}").touch()

    def reset(self) -> npt.NDArray[np.float32]:
        self._places = np.array([0.0, float(self._worker)])
        return self._observe()

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        self._count += 1
        self._meet_trouble()
        time.sleep(self._step_s)
        self._places += actions[:, 0] - 1 + 0.1 * np.sin(self._count + self._worker)
        reached, rewards = self._observe(), -np.abs(self._places)
        truncated = np.full(2, self._count % 5 == 0)
        return BatchStep(
            observations=self.reset() if truncated.all() else reached,
            final_observations=reached,
            rewards=rewards.astype(np.float32),
            terminated=np.zeros(2, dtype=np.bool_),
            truncated=truncated,
            metrics={"reward": rewards},
        )

    def state(self) -> dict[str, object]:
        return {"places": self._places.tolist(), "count": self._count}

    def load_state(self, state: dict[str, Any]) -> None:
        self._places, self._count = np.array(state["places"]), state["count"]

    def close(self) -> None:
        pass

    def _observe(self) -> npt.NDArray[np.float32]:
        return np.stack([self._places, np.cos(self._places)], axis=1).astype(np.float32)

    def _meet_trouble(self) -> None:
        kill, hang, fail = (
            self._folder / f"{self._worker}-{kind}-{self._count}"
            for kind in ("kill", "hang", "fail")
        )
        if kill.exists():
            kill.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if hang.exists():
            hang.unlink()
            threading.Event().wait()
        if fail.exists():
            fail.write_text(fail.read_text() + "x")
            raise ArithmeticError("walk: lost its way")


@dataclass(frozen=True, kw_only=True)
class Walks:
    """Makes the environments; every step of a worker in ``slow`` takes ``step_s``."""

    folder: Path
    slow: tuple[int, ...] = ()
    step_s: float = 0.0

    def __call__(self, worker: int) -> Walk:
        return Walk(self.folder, worker, self.step_s if worker in self.slow else 0.0)


class Deadly(Walks):
    """Makes worker 1 kill its process in its first step, always."""

    def __call__(self, worker: int) -> Walk:
        walk = super().__call__(worker)
        if worker == 1:
            walk.step = lambda actions: os.kill(os.getpid(), signal.SIGKILL)
        return walk


class Mixed(Walks):
    """Makes worker 1 another kind of environment."""

    def __call__(self, worker: int) -> Walk:
        walk = super().__call__(worker)
        walk.action_sizes = (3,) if worker != 1 else (4,)
        return walk


class Holder:
    """Actor that does nothing but hold its CPUs."""

    def is_there(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class Placing:
    """Makes environments of a task; ``folder`` has a file for each process that they are in."""

    folder: Path

    def __call__(self, worker: int) -> BatchedPlacementEnv:
        (self.folder / f"pid-{os.getpid()}").touch()
        task = PlacementTask(
            world=DrawnWorld(
                num_domains=3, dynamics=UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
            ),
            workload=build_workload("llama2_70b", num_layers=6, num_microbatches=2),
            schedule="1f1b",
            actions="order_split",
            epochs_per_episode=5,
        )
        return BatchedPlacementEnv(task, num_envs=2, seed=environment_seed(SEED, worker))


def actor_processes(folder: Path) -> list[int]:
    """Processes that environments were made in, this one apart, as far as they live."""
    found = [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]
    return [pid for pid in found if pid != os.getpid() and Path(f"/proc/{pid}").exists()]
