"""One environment's course: the world of the episode, its epochs, the last placement."""

from typing import NamedTuple

import numpy as np

from agents.flat.epoch_info import epoch_info
from agents.flat.kernels.seeds import world_seed
from agents.flat.measured_epoch import MeasuredEpoch
from agents.flat.task import Baseline, PlacementTask
from agents.flat.worlds import epoch_topology, has_course
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
    seed and ``k`` alone (`agents.flat.kernels.seeds`). Under any other law the seed draws one
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
        self._result: IterationResult | None = None
        return self._observe(base_world)

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
            observation=self._observe(base_world),
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
        """Cycles, bytes and network of the last step, see `agents.flat.epoch_info.epoch_info`."""
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

    def _observe(self, base_world: Topology) -> np.ndarray:
        self.topology = epoch_topology(base_world, self._seed, self.epoch, self.start_s)
        return self.task.observe(self.topology, self.last_placement)
