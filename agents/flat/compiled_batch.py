"""A batch of placement episodes as arrays, stepped by compiled code."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import numpy.typing as npt

from agents.flat.batch_arrays import new_batch_arrays
from agents.flat.batch_slice import BatchSlice
from agents.flat.batch_tables import StageTables
from agents.flat.episode import SeatState
from agents.flat.kernels.placements import domains_of_layers
from agents.flat.task import PlacementTask
from agents.flat.worlds import (
    DrawnWorld,
    GivenWorld,
)
from agents.ppo.batch_step import BatchStep
from des import simulate
from des.compiled.many.layout import METRICS, Observations, Verdict
from des.schedules import is_static


def is_compilable(task: PlacementTask) -> bool:
    """Whether compiled code can do all of a task: each placement by the engine, by any law."""
    if task.backend is not None or task.simulator is not simulate:
        return False
    if type(task.world) not in (GivenWorld, DrawnWorld):
        return False
    return is_static(task.schedule) and task.world.world(0).transport.is_immediate


class CompiledBatch:
    """The same as `agents.flat.episode.EpisodeBatch` to the last bit, for `is_compilable`
    tasks.

    Threads step slices of neighbouring environments, which do not depend on each other.
    """

    def __init__(
        self, task: PlacementTask, num_envs: int, seed: int, *, num_threads: int = 1
    ) -> None:
        self._arrays = new_batch_arrays(task, num_envs)
        world = task.world.world(0)
        tables = StageTables(task, world, self._arrays.links.hops)
        slices = np.array_split(np.arange(num_envs), min(num_threads, num_envs))
        self._slices = [BatchSlice(task, self._arrays, tables, seed, rows) for rows in slices]
        self._executor = ThreadPoolExecutor(len(slices)) if len(slices) > 1 else None
        self._observation_size = task.observation_size
        self._num_envs, self._num_layers = num_envs, task.workload.num_layers

    @property
    def bytes_per_env(self) -> float:
        """Memory of the arrays that have a row for each environment, per environment. [bytes]"""
        return self._arrays.bytes_per_env

    def begin(self) -> Observations:
        """Begin the next episode in every environment."""
        observations = self._new_observations()
        self._on_all(lambda part: part.begin(part.rows, observations))
        return observations

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions that are known to be within range, C-contiguous."""
        self._require_begun()
        observations, final_observations = self._new_observations(), self._new_observations()
        verdict = Verdict(
            rewards=np.empty(self._num_envs, np.float32),
            truncated=np.empty(self._num_envs, np.bool_),
            metrics=np.empty((len(METRICS), self._num_envs)),
        )
        self._on_all(lambda part: part.step(actions, verdict, final_observations, observations))
        return BatchStep(
            observations=observations,
            final_observations=final_observations,
            rewards=verdict.rewards,
            terminated=np.zeros(self._num_envs, dtype=np.bool_),
            truncated=verdict.truncated,
            metrics=dict(zip(METRICS, verdict.metrics, strict=True)),
        )

    def states(self) -> list[SeatState]:
        """Return the position of every environment: episode, epoch and last placement."""
        self._require_begun()
        course, domains = self._arrays.course, np.empty(self._num_layers, np.int32)
        states = []
        for row in range(self._num_envs):
            domains_of_layers(course.last, row, domains)
            number, epoch = int(course.number[row]), int(course.epoch[row])
            start_s = float(course.start_s[row])
            states.append(SeatState(number, epoch, tuple(domains.tolist()), start_s))
        return states

    def load(self, states: Sequence[SeatState]) -> None:
        """Stand where the environments stood."""
        self._on_all(lambda part: part.load(states))

    def close(self) -> None:
        """End the threads."""
        if self._executor is not None:
            self._executor.shutdown()

    def _on_all(self, call: Callable[[BatchSlice], None]) -> None:
        """Let all slices do something, each in its thread; all have ended on return."""
        if self._executor is None:
            call(self._slices[0])
            return
        futures = [self._executor.submit(call, part) for part in self._slices]
        wait(futures)
        for future in futures:
            future.result()

    def _new_observations(self) -> Observations:
        return np.empty((self._num_envs, self._observation_size), np.float32)

    def _require_begun(self) -> None:
        if self._arrays.course.number[0] < 0:
            raise RuntimeError("environment: reset must be called first")
