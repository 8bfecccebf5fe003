"""Simple rules: static, thresholds on use, length of queues."""

from dataclasses import dataclass

from des.base.checks import require_count, require_non_negative
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
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

    def first_memory(self, world: World) -> object:
        """Calm intervals so far, of each pool."""
        return dict.fromkeys(world.initial, 0)

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Compare the larger of both uses with the thresholds."""
        assert isinstance(memory, dict)
        counts, calm, why = {}, {}, []
        for name, pool in view.pools.items():
            use = self.use_of(pool)
            calm[name] = memory[name] + 1 if use < self.low else 0
            counts[name] = pool.ordered
            if use > self.high:
                counts[name] += self.step_up
            elif calm[name] >= self.num_calm:
                counts[name], calm[name] = pool.ordered - 1, 0
            why.append(f"{name} use {use:.2f}")
        return Decision(counts=_not_negative(counts), why=", ".join(why)), calm

    @staticmethod
    def use_of(pool: PoolView) -> float:
        """Share of the memory in use, or 1 where requests wait for it."""
        return 1.0 if pool.waiting > pool.active else max(pool.kv_fraction, pool.busy_fraction)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLength:
    """Instances by the requests that wait, and one fewer when none has waited for a while."""

    per_instance: float = 2.0
    num_calm: int = 6

    def __post_init__(self) -> None:
        require_non_negative("queue", "per_instance", self.per_instance)
        require_count("queue", "num_calm", self.num_calm)

    def first_memory(self, world: World) -> object:
        """Intervals without a queue so far, of each pool."""
        return dict.fromkeys(world.initial, 0)

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Grow in proportion to the queue; shrink by one."""
        assert isinstance(memory, dict)
        counts, calm, why = {}, {}, []
        for name, pool in view.pools.items():
            per_instance = pool.waiting / max(pool.active, 1)
            calm[name] = memory[name] + 1 if not pool.waiting and pool.kv_fraction < 0.6 else 0
            counts[name] = pool.ordered
            if per_instance > self.per_instance:
                missing = pool.waiting / self.per_instance - pool.active
                counts[name] = max(pool.ordered, pool.active + min(int(missing), pool.active) + 1)
            elif calm[name] >= self.num_calm:
                counts[name], calm[name] = pool.ordered - 1, 0
            why.append(f"{name} {per_instance:.1f} waiting per instance")
        return Decision(counts=_not_negative(counts), why=", ".join(why)), calm


def _not_negative(counts: dict[str, int]) -> dict[str, int]:
    return {name: max(num, 0) for name, num in counts.items()}
