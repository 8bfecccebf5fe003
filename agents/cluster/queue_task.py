"""The queueing task: a queue of drawn jobs, weights of their order as an action every hour."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from agents.cluster.admission import AcceptAll
from agents.cluster.placing import BestFit
from agents.cluster.preempting import WorstFirst
from agents.cluster.weighted_ordering import (
    CHOICES,
    INTERVAL_S,
    OBSERVATION_SIZE,
    SHORTEST_REMAINING,
    WeightedOrdering,
    queue_observation,
)
from des.cluster.engine import QueueEngine
from des.cluster.node_set import NodeSet
from des.cluster.plain_pricing import PlainPricing
from des.cluster.policy import Ordering, Policy
from des.cluster.queued_job import QueuedJob
from des.cluster.world import World

NUM_JOBS = 120
_WIDTHS, _CHANCES = (1, 2, 4, 8), (0.40, 0.20, 0.25, 0.15)
_REWARD_SCALE = 100.0


def draw_queue(seed: int) -> World:
    """Draw a world: 120 jobs of 1 to 8 GPUs on 4 nodes of 4, at 70 to 130 % load.

    Jobs take ``60 * 10**U(1, 3)`` s, 18 min to 10 h in the middle half.
    """
    rng = np.random.default_rng(np.random.SeedSequence((seed, 23)))
    widths = rng.choice(_WIDTHS, NUM_JOBS, p=_CHANCES)
    service_s = 60.0 * 10.0 ** rng.uniform(1.0, 3.0, NUM_JOBS)
    nodes = NodeSet.equal(4, 4)
    load = rng.uniform(0.7, 1.3)
    span_s = float(np.sum(widths * service_s)) / (nodes.num_gpus * load)
    arrivals_s = np.sort(rng.uniform(0.0, span_s, NUM_JOBS))
    jobs = tuple(
        QueuedJob(job_id=number, arrival_s=arrival_s, num_gpus=width, service_s=needed_s)
        for number, (arrival_s, width, needed_s) in enumerate(
            zip(arrivals_s.tolist(), widths.tolist(), service_s.tolist(), strict=True)
        )
    )
    return World(nodes=nodes, jobs=jobs)


def queue_policy(ordering: Ordering) -> Policy:
    """Policy of the task around an ordering."""
    return Policy(
        admission=AcceptAll(), ordering=ordering, placing=BestFit(), preempting=WorstFirst()
    )


@dataclass(slots=True, kw_only=True)
class QueueSimulator:
    """Episodes of a queue, stepped by the weights of an hour.

    The reward of an hour is the time that all jobs spent in the cluster in it, in job hours, over
    -100: its sum over an episode is the mean time from arrival to end but for a factor.
    """

    make_world: Callable[[int], World] = draw_queue
    observation_size: int = field(default=OBSERVATION_SIZE, init=False)
    action_sizes: tuple[int, ...] = field(default=CHOICES, init=False)
    first_choices: tuple[int, ...] = field(default=SHORTEST_REMAINING, init=False)
    _ordering: WeightedOrdering = field(default_factory=WeightedOrdering, init=False)
    _engine: QueueEngine | None = field(default=None, init=False)
    _now_s: float = field(default=0.0, init=False)
    _spent_s: float = field(default=0.0, init=False)

    def reset(self, seed: int) -> npt.NDArray[np.float32]:
        """Begin the episode of a seed and return its first observation."""
        world = self.make_world(seed)
        self._ordering = WeightedOrdering()
        pricing = PlainPricing(replacement=world.replacement)
        self._engine = QueueEngine(world, queue_policy(self._ordering), pricing, seed, None)
        self._now_s = self._spent_s = 0.0
        return queue_observation(self._engine.view_at(0.0))

    def step(self, choices: Sequence[int]) -> tuple[npt.NDArray[np.float32], float, bool]:
        """Order jobs by weights for an hour; return observation, reward, whether all is over.

        Raises
        ------
        ValueError
            If the choices are none, or no episode is under way.
        """
        if self._engine is None:
            raise ValueError("queue simulator: reset must be called first")
        self._ordering.choose(choices)
        self._now_s += INTERVAL_S
        engine = self._engine
        is_over = engine.advance(self._now_s)
        spent_s = engine.time_in_cluster_s(self._now_s)
        reward = (self._spent_s - spent_s) / 3600.0 / _REWARD_SCALE
        self._spent_s = spent_s
        observation = queue_observation(engine.view_at(self._now_s))
        if is_over:
            self._engine = None
        return observation, reward, is_over
