"""A batch of placement episodes as arrays, stepped by compiled code in slices, one a thread."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import numpy.typing as npt

from agents.flat.batch_arrays import BatchArrays, new_batch_arrays, pairs_of_links, write_runs
from agents.flat.batch_simulation import Simulation
from agents.flat.batch_tables import StageTables
from agents.flat.episode import SeatState
from agents.flat.kernels.judgement import judge_epochs
from agents.flat.kernels.placements import decode_layers, decode_order_and_splits, domains_of_layers
from agents.flat.kernels.worlds import (
    begin_courses,
    begin_episodes,
    draw_epochs,
    draw_worlds,
    observe_links,
)
from agents.flat.link_factors import LinkFactors
from agents.flat.task import PlacementTask
from agents.flat.worlds import (
    HIGHEST_BANDWIDTH_BYTES_PER_S,
    HIGHEST_LATENCY_S,
    LOWEST_BANDWIDTH_BYTES_PER_S,
    LOWEST_LATENCY_S,
    DrawnWorld,
    GivenWorld,
    has_course,
)
from agents.ppo.batch_step import BatchStep
from des import Placement, UniformLaw, simulate
from des.compiled.many.layout import METRICS, Observations, Verdict, Whole
from des.schedules import is_static


class BatchSlice:
    """Neighbouring environments of a batch and what one thread needs to step them."""

    def __init__(
        self,
        task: PlacementTask,
        arrays: BatchArrays,
        tables: StageTables,
        batch_seed: int,
        rows: Whole,
    ) -> None:
        self.rows = rows
        self._task, self._arrays, self._tables = task, arrays, tables
        self._batch_seed = batch_seed
        self._simulation = Simulation(arrays, tables, len(rows))
        self._factors: LinkFactors | None = None
        law = task.world.dynamics
        if type(law) is not UniformLaw or law.correlation:  # all else is drawn by kernels
            self._factors = LinkFactors(task, rows, len(arrays.links.back))
        self._pairs = pairs_of_links(task.world.num_domains)
        self._bounds = np.array(
            [
                LOWEST_BANDWIDTH_BYTES_PER_S,
                HIGHEST_BANDWIDTH_BYTES_PER_S,
                LOWEST_LATENCY_S,
                HIGHEST_LATENCY_S,
            ]
        )

    def begin(self, rows: Whole, observations: Observations) -> None:
        """Begin the next episodes of some environments and observe them."""
        self._begin_episodes(rows)
        self._observe(rows, observations)

    def step(
        self,
        actions: Whole,
        verdict: Verdict,
        final_observations: Observations,
        observations: Observations,
    ) -> None:
        """Run epochs, and begin the next episode where one ends."""
        arrays, rows = self._arrays, self.rows
        first, end = int(rows[0]), int(rows[-1]) + 1
        self._decode(actions, first, end)
        self._run_epochs(first, end)
        self._tables.cover(
            np.flatnonzero(np.bincount(arrays.placed.num_stages[first:end])).tolist()
        )
        judge_epochs(
            arrays.course,
            arrays.placed,
            arrays.work,
            self._tables.moments,
            arrays.outcome,
            rows,
            verdict,
        )
        begin_courses(arrays.course, arrays.placed, rows)
        if has_course(self._task.world.dynamics):
            arrays.course.start_s[rows] += arrays.outcome.duration_s[rows]
        self._observe(rows, final_observations)
        observations[first:end] = final_observations[first:end]
        ended = rows[verdict.truncated[first:end]]
        if len(ended):
            self.begin(ended, observations)

    def load(self, states: Sequence[SeatState]) -> None:
        """Stand where the environments of the slice stood."""
        course, rows = self._arrays.course, self.rows
        for row in rows.tolist():
            course.number[row] = states[row].number - 1
        self._begin_episodes(rows)
        for row in rows.tolist():
            course.epoch[row], course.start_s[row] = states[row].epoch, states[row].start_s
            write_runs(course.last, row, Placement(domain_of_layer=states[row].domain_of_layer))
        self._draw_epochs(rows)

    def _decode(self, actions: Whole, first: int, end: int) -> None:
        placed, num_layers = self._arrays.placed, self._task.workload.num_layers
        if self._task.actions == "per_layer":
            decode_layers(actions, first, end, placed)
        else:
            decode_order_and_splits(actions, num_layers, first, end, placed)

    def _run_epochs(self, first: int, end: int) -> None:
        arrays, costs = self._arrays, self._task.replacement
        if costs is not None and self._task.world.num_domains > 1:
            self._simulation.migrate(self.rows, costs)
        arrays.outcome.duration_s[first:end] = arrays.outcome.migration_s[first:end]
        self._simulation.run(
            *(self.rows, arrays.placed, arrays.course.now),
            num_iterations=self._task.iterations_per_epoch,
        )

    def _begin_episodes(self, rows: Whole) -> None:
        """Draw the worlds of episodes that begin, and the courses that last through them."""
        course = self._arrays.course
        begin_episodes(course, self._batch_seed, self._arrays.uniform, rows)
        self._draw_worlds(rows)
        course.start_s[rows] = 0.0
        if self._factors is not None:
            self._factors.begin(rows, course)

    def _draw_worlds(self, rows: Whole) -> None:
        """Judge the uniform placement in the worlds of episodes that begin."""
        if isinstance(self._task.world, GivenWorld):
            return
        course, outcome = self._arrays.course, self._arrays.outcome
        draw_worlds(course.seed, self._pairs, self._bounds, rows, course.base)
        outcome.duration_s[rows] = 0.0
        self._simulation.run(rows, course.last, course.base, num_iterations=1)
        course.baseline_time_s[rows] = outcome.duration_s[rows]
        course.baseline_bytes[rows] = outcome.num_bytes[rows]

    def _observe(self, rows: Whole, observations: Observations) -> None:
        self._draw_epochs(rows)
        arrays = self._arrays
        observe_links(
            arrays.course, arrays.links, self._task.workload.num_layers, rows, observations
        )

    def _draw_epochs(self, rows: Whole) -> None:
        """Write down the links as they are when epochs begin, which then hold them."""
        course = self._arrays.course
        draw_epochs(course, self._arrays.links, rows)
        if self._factors is not None:
            bandwidth_factors, latency_factors = self._factors.at_start(rows, course)
            course.now.bandwidth_bytes_per_s[rows] *= bandwidth_factors
            course.now.latency_s[rows] *= latency_factors


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
