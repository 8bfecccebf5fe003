"""One environment's course, epoch by epoch, and a batch of them, one after the other."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agents.flat.kernels.worlds import episode_seed, world_seed
from agents.flat.measured_epoch import MeasuredEpoch, epoch_info
from agents.flat.task import Baseline, PlacementTask
from agents.flat.worlds import EpisodeWorlds, has_course
from agents.ppo.batch_step import BatchStep
from des import EpochResult, IterationResult, Placement, Topology, lower
from des.base.checks import require_seed


class EpisodeStep(NamedTuple):
    """Outcome of one decision."""

    observation: np.ndarray
    reward: float
    truncated: bool
    metrics: dict[str, float]


class Episode:
    """Steps through epochs; everything random follows from the seed given to `begin`.

    The seed is within [0, 2**63). Under the uniform law epoch ``k`` of an episode is drawn from the
    seed and ``k`` alone (`agents.flat.kernels.worlds`). Under any other law the seed draws one
    course of the links, and every epoch begins at the time of it, ``start_s``, at which the one
    before has ended, and holds the links that it finds then. So an episode can be resumed at any
    epoch without replaying it.
    """

    def __init__(self, task: PlacementTask) -> None:
        self.task = task
        self._base_world: Topology | None = None

    def begin(self, seed: int) -> np.ndarray:
        """Draw the episode's world and first epoch; return the first observation."""
        return self.resume(seed, epoch=0, last_placement=self.task.uniform_placement)

    def resume(
        self, seed: int, epoch: int, last_placement: Placement, *, start_s: float = 0.0
    ) -> np.ndarray:
        """Stand where an episode stood before the decision of ``epoch``."""
        require_seed("episode", "seed", seed)
        if len(last_placement.domain_of_layer) != self.task.workload.num_layers:
            raise ValueError(
                f"episode: last_placement must have {self.task.workload.num_layers} layers, got "
                f"{len(last_placement.domain_of_layer)}"
            )
        self._seed = seed
        self.epoch = epoch
        self.start_s = start_s
        self.last_placement = last_placement
        base_world = self.task.world.world(int(world_seed(seed)))
        if base_world is not self._base_world:
            self._base_world = base_world
            self._baseline = self.task.baseline(base_world)
        self._worlds = EpisodeWorlds(base_world, seed)
        self._result: IterationResult | None = None
        return self._observe()

    def step(self, placement: Placement) -> EpisodeStep:
        """Run the epoch's iterations with a placement and move on to the next epoch."""
        base_world = self._require_begun()
        epoch = self.task.run_epoch(self.topology, placement, self.last_placement)
        self._result = epoch.iterations[-1] if isinstance(epoch, EpochResult) else None
        self._last = self.topology, epoch
        metrics = self.task.metrics(epoch, self._baseline)
        self.last_placement = placement
        self.epoch += 1
        if has_course(base_world.dynamics):
            self.start_s += epoch.duration_s
        return EpisodeStep(
            observation=self._observe(),
            reward=self.task.reward(metrics),
            truncated=self.epoch >= self.task.epochs_per_episode,
            metrics=metrics,
        )

    def last_result(self) -> IterationResult:
        """Last iteration of the last step; before the first, one of the uniform plan."""
        self._require_begun()
        if self.task.backend is not None:
            raise RuntimeError("environment: iterations of a backend are measured, not simulated")
        if self._result is None:
            self._result = self.task.simulate(self.topology, self.last_placement)
        return self._result

    def last_info(self) -> dict[str, object]:
        """Cycles, bytes and network of the last step, see `epoch_info`."""
        topology, epoch = self._last
        if isinstance(epoch, MeasuredEpoch):
            return epoch_info(topology, epoch.program, epoch)
        plan = self.task.plan(self.last_placement)
        return epoch_info(topology, lower(topology, self.task.workload, plan), epoch)

    @property
    def base_world(self) -> Topology:
        """The episode's world, with its links at base figures."""
        return self._require_begun()

    @property
    def baseline(self) -> Baseline:
        """Figures that this episode's rewards compare with."""
        return self._baseline

    def _require_begun(self) -> Topology:
        """Return the episode's world; refuse to continue before `begin`."""
        if self._base_world is None:
            raise RuntimeError("environment: reset must be called first")
        return self._base_world

    def _observe(self) -> np.ndarray:
        self.topology = self._worlds.topology(self.epoch, self.start_s)
        return self.task.observe(self.topology, self.last_placement)


class SeatState(NamedTuple):
    """Position of one environment: its episode and epoch, from 0, and the last placement.

    ``start_s`` is the time of the episode's course of the links, if it has one, else 0.
    """

    number: int
    epoch: int
    domain_of_layer: tuple[int, ...]
    start_s: float = 0.0


class EpisodeBatch:
    """One `Episode` an environment; it begins the next when one is over.

    Everything random follows from (seed, position in the batch, number of the episode), see
    `agents.flat.kernels.worlds`. What is left to the engine of `des` is left to its compiled twin.
    """

    def __init__(self, task: PlacementTask, num_envs: int, seed: int) -> None:
        self._task = task = task.compiled()
        self._seed = seed
        self._numbers = [-1] * num_envs
        self._episodes = [Episode(task) for _ in range(num_envs)]

    @property
    def bytes_per_env(self) -> None:
        """Unknown memory of an environment."""

    def begin(self) -> npt.NDArray[np.float32]:
        """Begin the next episode in every environment."""
        return np.stack([self._begin(position) for position in range(len(self._episodes))])

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions that are known to be within range."""
        decode = self._task.codec.decode
        steps = [
            episode.step(decode(action))
            for episode, action in zip(self._episodes, actions.tolist(), strict=True)
        ]
        return BatchStep(
            observations=np.stack([self._go_on(*each) for each in enumerate(steps)]),
            final_observations=np.stack([step.observation for step in steps]),
            rewards=np.array([step.reward for step in steps], dtype=np.float32),
            terminated=np.zeros(len(steps), dtype=np.bool_),
            truncated=np.array([step.truncated for step in steps], dtype=np.bool_),
            metrics={
                name: np.array([step.metrics[name] for step in steps]) for name in steps[0].metrics
            },
        )

    def states(self) -> list[SeatState]:
        """Return the position of every environment: episode, epoch and last placement."""
        return [
            SeatState(
                number, episode.epoch, episode.last_placement.domain_of_layer, episode.start_s
            )
            for number, episode in zip(self._numbers, self._episodes, strict=True)
        ]

    def load(self, states: Sequence[SeatState]) -> None:
        """Stand where the environments stood."""
        for position, state in enumerate(states):
            self._numbers[position] = state.number
            placement = Placement(domain_of_layer=state.domain_of_layer)
            seed = self._seed_of(position)
            episode = self._episodes[position]
            episode.resume(seed, state.epoch, placement, start_s=state.start_s)

    def close(self) -> None:
        """Nothing is held."""

    def _go_on(self, position: int, step: EpisodeStep) -> np.ndarray:
        return self._begin(position) if step.truncated else step.observation

    def _begin(self, position: int) -> np.ndarray:
        self._numbers[position] += 1
        return self._episodes[position].begin(self._seed_of(position))

    def _seed_of(self, position: int) -> int:
        return int(episode_seed(self._seed, position, self._numbers[position]))
