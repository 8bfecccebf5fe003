"""Rules of autoscaling: fixed sizes, thresholds of load, and those of a whole cluster."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from agents.serving.hpa import TOLERANCE, HpaRules, hpa_step
from agents.serving.hpa_metrics import by_average_value
from agents.serving.keda import KedaMemory, KedaRules, keda_step
from agents.serving.observed import pool_requests, target_requests
from des.base.checks import require_count, require_non_negative, require_positive
from des.serving.fleet_world import Decision, PoolView, View, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Static:
    """The fleet as it is at the start."""

    def first_memory(self, world: World) -> object:
        """Counts at the start."""
        return dict(world.initial)

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Keep the counts."""
        assert isinstance(memory, dict)
        return Decision(counts=memory, why="static"), memory


class PoolRule(ABC):
    """A rule that decides on each pool by itself, with a memory of each."""

    def first_of_pool(self) -> object:
        """Memory of a pool at the start."""
        return None

    @abstractmethod
    def of_pool(self, view: View, name: str, memory: Any) -> tuple[int, object, str]:
        """Instances of a pool, its next memory, and why; empty: between ticks."""

    def first_memory(self, world: World) -> object:
        """Memories of all pools at the start."""
        return dict.fromkeys(world.initial, self.first_of_pool())

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Decide on one pool after the other."""
        assert isinstance(memory, dict)
        found = {name: self.of_pool(view, name, memory[name]) for name in view.pools}
        why = ", ".join(f"{name} {said}" for name, (_, _, said) in found.items() if said)
        counts = {name: count for name, (count, _, _) in found.items()}
        after = {name: kept for name, (_, kept, _) in found.items()}
        return Decision(counts=counts, why=why or "between ticks"), after


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold(PoolRule):
    """Steps up above a use of memory or time, one down below another after calm intervals."""

    high: float = 0.8
    low: float = 0.4
    step_up: int = 2
    num_calm: int = 6

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise ValueError(
                f"threshold: low must be below high, both within 0 and 1, "
                f"got {self.low!r} and {self.high!r}"
            )
        require_count("threshold", "step_up", self.step_up)

    def first_of_pool(self) -> object:
        """Calm intervals so far."""
        return 0

    def of_pool(self, view: View, name: str, memory: Any) -> tuple[int, object, str]:
        """Compare the larger of both uses with the thresholds."""
        pool = view.pools[name]
        use = self.use_of(pool)
        count, calm = pool.ordered, memory + 1 if use < self.low else 0
        if use > self.high:
            count += self.step_up
        elif calm >= self.num_calm:
            count, calm = max(pool.ordered - 1, 0), 0
        return count, calm, f"use {use:.2f}"

    @staticmethod
    def use_of(pool: PoolView) -> float:
        """Share of the memory in use, or 1 where requests wait for it."""
        return 1.0 if pool.waiting > pool.active else max(pool.kv_fraction, pool.busy_fraction)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLength(PoolRule):
    """Instances by the requests that wait, and one fewer when none has waited for a while."""

    per_instance: float = 2.0
    num_calm: int = 6

    def __post_init__(self) -> None:
        require_non_negative("queue", "per_instance", self.per_instance)
        require_count("queue", "num_calm", self.num_calm)

    def first_of_pool(self) -> object:
        """Intervals without a queue so far."""
        return 0

    def of_pool(self, view: View, name: str, memory: Any) -> tuple[int, object, str]:
        """Grow in proportion to the queue; shrink by one."""
        pool = view.pools[name]
        per_instance = pool.waiting / max(pool.active, 1)
        calm = memory + 1 if not pool.waiting and pool.kv_fraction < 0.6 else 0
        count = pool.ordered
        if per_instance > self.per_instance:
            missing = pool.waiting / self.per_instance - pool.active
            count = max(pool.ordered, pool.active + min(int(missing), pool.active) + 1)
        elif calm >= self.num_calm:
            count, calm = max(pool.ordered - 1, 0), 0
        return count, calm, f"{per_instance:.1f} waiting per instance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Llumnix(PoolRule):
    """Freeness: decoding steps that the free memory of an instance still bears, on average.

    Source: Sun et al., "Llumnix", OSDI 2024, section 4.4.3.
    """

    low_steps: float = 100.0
    high_steps: float = 1500.0

    def __post_init__(self) -> None:
        if not 0 < self.low_steps < self.high_steps:
            raise ValueError(
                f"llumnix: low_steps must be above 0 and below high_steps, "
                f"got {self.low_steps!r} and {self.high_steps!r}"
            )

    def of_pool(self, view: View, name: str, memory: Any) -> tuple[int, object, str]:
        """Grow below the low freeness, shrink by one above the high one."""
        pool, steps = view.pools[name], self.freeness(view, name)
        count = pool.ordered
        if steps < self.low_steps and not pool.starting:
            count += max(1, pool.active // 4)
        elif steps > self.high_steps and not pool.starting and pool.ordered:
            count -= 1
        return count, memory, f"freeness {steps:.0f}"

    @staticmethod
    def freeness(view: View, name: str) -> float:
        """Free tokens less those that wait, over requests that run."""
        pool = view.pools[name]
        capacity = view.engine_of(name).kv_capacity_tokens * max(pool.active, 1)
        free = capacity * (1.0 - pool.kv_fraction) - pool.waiting_tokens
        return free / max(pool.running, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation(PoolRule):
    """llm-d's saturation in token units: spare memory and queue; down only if N - 1 bears all.

    Source: the documented workload-variant autoscaler of llm-d.
    """

    kv_limit: float = 0.8
    queue_limit: float = 5.0
    spare_kv: float = 0.1
    spare_queue: float = 3.0

    def of_pool(self, view: View, name: str, memory: Any) -> tuple[int, object, str]:
        """One more when spare capacity is short, one fewer when the others could bear all."""
        pool = view.pools[name]
        queue = pool.waiting / max(pool.active, 1)
        spare_kv, spare_queue = self.kv_limit - pool.kv_fraction, self.queue_limit - queue
        count = pool.ordered
        if pool.starting == 0:
            if spare_kv < self.spare_kv or spare_queue < self.spare_queue:
                count += 1
            elif pool.active > 1:
                share = pool.active / (pool.active - 1)
                kv_after = self.kv_limit - pool.kv_fraction * share
                queue_after = self.queue_limit - queue * share
                load_after = pool_requests(pool) / (pool.active - 1)
                bears = kv_after >= self.spare_kv and queue_after >= self.spare_queue
                count -= bears and load_after <= target_requests(view, name)
        return count, memory, f"spare memory {spare_kv:.2f}, queue {spare_queue:.1f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlanner(PoolRule):
    """Dynamo's load planner: up on queue or memory, down only if N - 1 can bear the load.

    Views in which an instance has just started are left out.
    """

    adjustment_s: float = 30.0
    prefill_queue_high: float = 0.5
    kv_high: float = 0.9
    kv_low: float = 0.5

    def __post_init__(self) -> None:
        require_positive("load planner", "adjustment_s", self.adjustment_s)

    def first_of_pool(self) -> object:
        """Time of the last change."""
        return -self.adjustment_s

    def of_pool(self, view: View, name: str, memory: Any) -> tuple[int, object, str]:
        """Change the pool by one at most, once an adjustment interval."""
        pool = view.pools[name]
        count = pool.ordered
        if view.now_s - memory < self.adjustment_s or pool.starting:
            return count, memory, "left out"
        load = pool_requests(pool) / target_requests(view, name) / max(pool.active, 1)
        queue = pool.waiting / max(pool.active, 1)
        if queue > self.prefill_queue_high or pool.kv_fraction > self.kv_high or load > 1.0:
            count += 1
        elif pool.active > 1 and pool.kv_fraction < self.kv_low:
            count -= load * pool.active / (pool.active - 1) < 0.8
        return count, memory if count == pool.ordered else view.now_s, f"load {load:.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaPolicy(PoolRule):
    """The HPA at each of its ticks; between them the counts stay."""

    tick_s: float = 15.0
    share: float = 0.5
    """Target load of an instance, as a fraction of its most within the SLO."""

    def __post_init__(self) -> None:
        require_positive("hpa", "tick_s", self.tick_s)
        require_positive("hpa", "share", self.share)

    def first_of_pool(self) -> object:
        """Time of the last tick, and the memory of the HPA."""
        return -self.tick_s, None

    def of_pool(self, view: View, name: str, memory: Any) -> tuple[int, object, str]:
        """Let the HPA see requests per instance; instances that start are counted."""
        num, now_s = view.pools[name].ordered, view.now_s
        if now_s - memory[0] < self.tick_s:
            return num, memory, ""
        rules = HpaRules(min_replicas=view.limits.min_per_pool, max_replicas=view.limits.max_total)
        total, target = pool_requests(view.pools[name]), target_requests(view, name, self.share)
        proposal = by_average_value(total, target, num, TOLERANCE)
        decision, after = hpa_step(rules, memory[1], now_s, num, [proposal])
        why = f"{total} requests for {target:.1f} each: {decision.reason}"
        return decision.replicas, (now_s, after), why


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaPolicy(PoolRule):
    """KEDA with its HPA; decisions count as 15 s each, every second one, from the first, polls."""

    cooldown_s: float = 300.0

    def first_of_pool(self) -> object:
        """Number of decisions, and the memory of KEDA."""
        return 0, KedaMemory()

    def of_pool(self, view: View, name: str, memory: Any) -> tuple[int, object, str]:
        """Let KEDA see the requests of the pool."""
        pool, (num, before) = view.pools[name], memory
        rules = KedaRules(
            threshold=target_requests(view, name),
            min_replicas=view.limits.min_per_pool,
            max_replicas=view.limits.max_total,
            cooldown_s=self.cooldown_s,
        )
        now_s, load = 15.0 * (num + 2), float(pool_requests(pool))
        count, after, acted = keda_step(rules, before, now_s, pool.ordered, load)
        return count, (num + 1, after), acted or "kept"
