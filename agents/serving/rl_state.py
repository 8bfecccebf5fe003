"""State of a fleet as a learnt policy sees it, and the actions that it has."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from des.base.checks import require_count, require_non_negative, require_positive
from des.serving.fleet_world import MIXED, PROMPT, TOKEN, Decision, PoolView, View

POOL_FIELDS = 10
SHARED_FIELDS = 8
_USUAL_STEP = 5
NUM_WEIGHTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingWeights:
    """Weights of requests outside the SLO, of cost and of changes; an input of the policy."""

    slo: float = 1.0
    cost: float = 0.3
    stability: float = 0.05

    def __post_init__(self) -> None:
        for name in ("slo", "cost", "stability"):
            require_non_negative("reward weights", name, getattr(self, name))


DEFAULT_WEIGHTS = ScalingWeights()


@dataclass(frozen=True, slots=True, kw_only=True)
class RLStateCollector:
    """Turns a view into an observation: 10 numbers of each of two pools, 8 shared, 3 weights.

    Of a pool: active, starting and draining instances, requests that wait and run, prompt tokens
    that wait, shares of memory and of time in use, time that starts still need, and instances that
    a guide wants beyond those ordered. Shared: arrivals, their prompt tokens, tokens written; over
    the SLO: mean and 95th percentile of the time to the first token, and mean gap; attainment, and
    all instances. A mixed pool takes the first place and leaves the second at 0. Counts are
    compressed as ``log(1 + x)``.
    """

    weights: ScalingWeights = DEFAULT_WEIGHTS

    @property
    def size(self) -> int:
        """Numbers of an observation."""
        return 2 * POOL_FIELDS + SHARED_FIELDS + NUM_WEIGHTS

    def collect(self, view: View, wanted: Mapping[str, int]) -> npt.NDArray[np.float32]:
        """Make the observation of a view and of the counts that the guide wants.

        Raises
        ------
        ValueError
            If a metric is not finite.
        """
        names = (MIXED,) if MIXED in view.pools else (PROMPT, TOKEN)
        numbers = [
            each for name in names for each in _pool_numbers(view.pools[name], view, wanted[name])
        ]
        numbers += [0.0] * (2 * POOL_FIELDS - len(numbers))
        slo = view.slo
        numbers += [
            math.log1p(view.arrivals / view.interval_s),
            math.log1p(view.prompt_tokens / view.interval_s),
            math.log1p(view.output_tokens / view.interval_s),
            math.log1p((view.ttft_s or 0.0) / slo.ttft_s),
            math.log1p((view.ttft_p95_s or 0.0) / slo.ttft_s),
            math.log1p((view.gap_s or 0.0) / slo.gap_s),
            1.0 if view.attainment is None else view.attainment,
            sum(pool.ordered + pool.draining for pool in view.pools.values())
            / view.limits.max_total,
        ]
        numbers += [self.weights.slo, self.weights.cost, self.weights.stability]
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"state: metrics must be finite, got {numbers}")
        return np.array(numbers, np.float32)


def _pool_numbers(pool: PoolView, view: View, wanted: int) -> list[float]:
    return [
        math.log1p(pool.active),
        math.log1p(pool.starting),
        math.log1p(pool.draining),
        math.log1p(pool.waiting),
        math.log1p(pool.running),
        math.log1p(pool.waiting_tokens),
        pool.kv_fraction,
        pool.busy_fraction,
        pool.start_left_s / view.interval_s,
        min(max((wanted - pool.ordered) / _USUAL_STEP, -2.0), 2.0),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RLActionExecutor:
    """Turns an action in [-1, 1]^3 (prompt, token, migrate) into a decision.

    The first two, times ``action_scale_step``, are instances more or fewer; the third, times
    ``action_mig_step``, instances that change from prompt to token. A mixed pool takes the first.
    With ``is_adaptive`` the step of a pool is at most half of its instances, and at least 1. With
    ``is_residual`` an action changes the counts that a guide wants, not those that are ordered.
    """

    action_scale_step: int = 5
    action_mig_step: int = 3
    min_instances_per_pool: int = 1
    max_total_instances: int = 100
    is_adaptive: bool = False
    is_residual: bool = False

    def __post_init__(self) -> None:
        for name in ("action_scale_step", "min_instances_per_pool", "max_total_instances"):
            require_count("actions", name, getattr(self, name))
        if self.action_mig_step < 0:
            raise ValueError(
                f"actions: action_mig_step must be at least 0, got {self.action_mig_step}"
            )
        self._require_room(1)

    def _require_room(self, num_pools: int) -> None:
        least = num_pools * self.min_instances_per_pool
        if least > self.max_total_instances:
            raise ValueError(
                f"actions: max_total_instances must be at least {least}, "
                f"min_instances_per_pool in {num_pools} pools, got {self.max_total_instances}"
            )

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Different changes that each component leads to."""
        scale, migrate = 2 * self.action_scale_step + 1, 2 * self.action_mig_step + 1
        return scale, scale, migrate

    def action_of(self, choices: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Action of the number of a change of each component, the least first."""
        steps = (self.action_scale_step, self.action_scale_step, max(self.action_mig_step, 1))
        middle = np.array(self.sizes) // 2
        found: npt.NDArray[np.float64] = (np.asarray(choices) - middle) / np.array(steps)
        return found

    def decide(
        self, view: View, action: npt.ArrayLike, wanted: Mapping[str, int] | None = None
    ) -> Decision:
        """Make a decision; ``wanted`` are the counts of the guide, for residual actions.

        Raises
        ------
        ValueError
            If the action is not three numbers within [-1, 1], the counts are missing, or the limits
            leave no room for both pools.
        """
        if self.is_residual and wanted is None:
            raise ValueError("residual action: wanted must be the counts of the guide, got none")
        numbers = np.asarray(action, float)
        if numbers.shape != (3,) or not (np.abs(numbers) <= 1.0).all():  # NaN fails too
            raise ValueError(f"action must be 3 numbers within [-1, 1], got {action!r}")
        names = (MIXED,) if MIXED in view.pools else (PROMPT, TOKEN)
        self._require_room(len(names))
        counts = {}
        for name, number in zip(names, numbers, strict=False):
            now = view.pools[name].ordered
            step = self.action_scale_step
            if self.is_adaptive:
                step = min(step, max(1, now // 2))
            base = wanted[name] if self.is_residual and wanted is not None else now
            counts[name] = max(base + round(float(number) * step), self.min_instances_per_pool)
        over = sum(counts.values()) - self.max_total_instances
        for name in names:
            given = min(max(over, 0), counts[name] - self.min_instances_per_pool)
            counts[name] -= given
            over -= given
        migrate = 0 if MIXED in view.pools else round(float(numbers[2]) * self.action_mig_step)
        shown = ", ".join(f"{number:+.2f}" for number in numbers)
        return Decision(counts=counts, migrate=migrate, why=f"action {shown}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RLRewardCalculator:
    """Reward of an interval: share of bad requests, instances, and changes, each with its weight.

    Bad are requests that finished outside the SLO, and those that wait for their first token. The
    cost is that of instances that are ordered or drain, over ``cost_scale`` of them.
    """

    weights: ScalingWeights = DEFAULT_WEIGHTS
    cost_scale: float = 10.0

    def __post_init__(self) -> None:
        require_positive("reward", "cost_scale", self.cost_scale)

    def reward(self, view: View, decision: Decision) -> float:
        """Reward of the interval before a view, in which a decision was in force."""
        finished_bad = (1.0 - (1.0 if view.attainment is None else view.attainment)) * view.finished
        waiting = sum(pool.waiting for pool in view.pools.values())
        bad = (finished_bad + waiting) / max(view.finished + waiting, 1)
        instances = sum(pool.ordered + pool.draining for pool in view.pools.values())
        changes = abs(decision.migrate) + sum(
            abs(decision.counts.get(name, pool.ordered) - pool.active)
            for name, pool in view.pools.items()
        )
        weights = self.weights
        return -(
            weights.slo * bad
            + weights.cost * instances / self.cost_scale
            + weights.stability * changes / self.cost_scale
        )
