"""Rules by free memory and load: Llumnix, llm-d's saturation, Dynamo's load planner."""

from dataclasses import dataclass

from agents.serving.observed import pool_requests, target_requests
from des.base.checks import require_positive
from des.serving.fleet_world import Decision, View, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Llumnix:
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

    def first_memory(self, world: World) -> object:
        """Nothing."""
        return None

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Grow below the low freeness, shrink by one above the high one."""
        counts, why = {}, []
        for name, pool in view.pools.items():
            steps = self.freeness(view, name)
            counts[name] = pool.ordered
            if steps < self.low_steps and not pool.starting:
                counts[name] += max(1, pool.active // 4)
            elif steps > self.high_steps and not pool.starting and pool.ordered:
                counts[name] -= 1
            why.append(f"{name} freeness {steps:.0f}")
        return Decision(counts=counts, why=", ".join(why)), memory

    @staticmethod
    def freeness(view: View, name: str) -> float:
        """Free tokens less those that wait, over requests that run."""
        pool = view.pools[name]
        capacity = view.engine_of(name).kv_capacity_tokens * max(pool.active, 1)
        free = capacity * (1.0 - pool.kv_fraction) - pool.waiting_tokens
        return free / max(pool.running, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """llm-d's saturation in token units: spare memory and queue; down only if N - 1 bears all.

    Source: the documented workload-variant autoscaler of llm-d.
    """

    kv_limit: float = 0.8
    queue_limit: float = 5.0
    spare_kv: float = 0.1
    spare_queue: float = 3.0

    def first_memory(self, world: World) -> object:
        """Nothing."""
        return None

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """One more when spare capacity is short, one fewer when the others could bear all."""
        counts, why = {}, []
        for name, pool in view.pools.items():
            queue = pool.waiting / max(pool.active, 1)
            spare_kv, spare_queue = self.kv_limit - pool.kv_fraction, self.queue_limit - queue
            counts[name] = pool.ordered
            if pool.starting == 0:
                if spare_kv < self.spare_kv or spare_queue < self.spare_queue:
                    counts[name] += 1
                elif pool.active > 1:
                    share = pool.active / (pool.active - 1)
                    kv_after = self.kv_limit - pool.kv_fraction * share
                    queue_after = self.queue_limit - queue * share
                    load_after = pool_requests(pool) / (pool.active - 1)
                    bears = kv_after >= self.spare_kv and queue_after >= self.spare_queue
                    counts[name] -= bears and load_after <= target_requests(view, name)
            why.append(f"{name} spare memory {spare_kv:.2f}, queue {spare_queue:.1f}")
        return Decision(counts=counts, why=", ".join(why)), memory


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlanner:
    """Dynamo's load planner: up on queue or memory, down only if N - 1 can bear the load.

    Views in which an instance has just started are left out.
    """

    adjustment_s: float = 30.0
    prefill_queue_high: float = 0.5
    kv_high: float = 0.9
    kv_low: float = 0.5

    def __post_init__(self) -> None:
        require_positive("load planner", "adjustment_s", self.adjustment_s)

    def first_memory(self, world: World) -> object:
        """Time of the last change of each pool."""
        return dict.fromkeys(world.initial, -self.adjustment_s)

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Change each pool by one at most, once an adjustment interval."""
        assert isinstance(memory, dict)
        counts, after, why = {}, dict(memory), []
        for name, pool in view.pools.items():
            counts[name] = pool.ordered
            if view.now_s - memory[name] < self.adjustment_s or pool.starting:
                why.append(f"{name} left out")
                continue
            load = pool_requests(pool) / target_requests(view, name) / max(pool.active, 1)
            queue = pool.waiting / max(pool.active, 1)
            if queue > self.prefill_queue_high or pool.kv_fraction > self.kv_high or load > 1.0:
                counts[name] += 1
            elif pool.active > 1 and pool.kv_fraction < self.kv_low:
                counts[name] -= load * pool.active / (pool.active - 1) < 0.8
            if counts[name] != pool.ordered:
                after[name] = view.now_s
            why.append(f"{name} load {load:.2f}")
        return Decision(counts=counts, why=", ".join(why)), after
