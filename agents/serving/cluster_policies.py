"""Kubernetes' HPA and KEDA as policies of a fleet: requests per instance against a target."""

from dataclasses import dataclass

from agents.serving.hpa import TOLERANCE, HpaMemory, HpaRules, hpa_step
from agents.serving.hpa_metrics import by_average_value
from agents.serving.keda import KedaMemory, KedaRules, keda_step
from agents.serving.observed import pool_requests, target_requests
from des.base.checks import require_positive
from des.serving.fleet_world import Decision, View, World


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaPolicy:
    """The HPA at each of its ticks; between them the counts stay."""

    tick_s: float = 15.0
    share: float = 0.5
    """Target load of an instance, as a fraction of its most within the SLO."""

    def __post_init__(self) -> None:
        require_positive("hpa", "tick_s", self.tick_s)
        require_positive("hpa", "share", self.share)

    def first_memory(self, world: World) -> object:
        """Time of the last tick, and the memory of the HPA, of each pool."""
        return dict.fromkeys(world.initial, (-self.tick_s, None))

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Let the HPA see requests per instance; instances that start are counted."""
        assert isinstance(memory, dict)
        counts, after, why = {}, {}, []
        rules = HpaRules(min_replicas=view.limits.min_per_pool, max_replicas=view.limits.max_total)
        for name, pool in view.pools.items():
            last_s, hpa_memory = memory[name]
            counts[name], after[name] = pool.ordered, memory[name]
            if view.now_s - last_s < self.tick_s:
                continue
            assert hpa_memory is None or isinstance(hpa_memory, HpaMemory)
            total, target = pool_requests(pool), target_requests(view, name, self.share)
            proposal = by_average_value(total, target, pool.ordered, TOLERANCE)
            decision, hpa_memory = hpa_step(rules, hpa_memory, view.now_s, pool.ordered, [proposal])
            counts[name], after[name] = decision.replicas, (view.now_s, hpa_memory)
            why.append(f"{name} {total} requests for {target:.1f} each: {decision.reason}")
        return Decision(counts=counts, why=", ".join(why) or "between ticks"), after


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaPolicy:
    """KEDA with its HPA; decisions count as 15 s each, every second one, from the first, polls."""

    cooldown_s: float = 300.0

    def first_memory(self, world: World) -> object:
        """Number of decisions, and the memory of KEDA, of each pool."""
        return {name: (0, KedaMemory()) for name in world.initial}

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Let KEDA see the requests of each pool."""
        assert isinstance(memory, dict)
        counts, after, why = {}, {}, []
        for name, pool in view.pools.items():
            num, keda_memory = memory[name]
            rules = KedaRules(
                threshold=target_requests(view, name),
                min_replicas=view.limits.min_per_pool,
                max_replicas=view.limits.max_total,
                cooldown_s=self.cooldown_s,
            )
            now_s = 15.0 * (num + 2)
            counts[name], keda_memory, acted = keda_step(
                rules, keda_memory, now_s, pool.ordered, float(pool_requests(pool))
            )
            after[name] = (num + 1, keda_memory)
            why.append(f"{name} {acted or 'kept'}")
        return Decision(counts=counts, why=", ".join(why)), after
