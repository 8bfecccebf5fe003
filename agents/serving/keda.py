"""KEDA as a pure step: waking from zero, cooling down, and its HPA in between.

Source: the documented behaviour of KEDA's executor (Apache-2.0).
"""

from dataclasses import dataclass, replace

from agents.serving.hpa import DEFAULT_DOWN, DEFAULT_UP, Direction, HpaMemory, HpaRules, hpa_step
from agents.serving.hpa_metrics import by_average_value
from des.base.checks import require_non_negative, require_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaRules:
    """Bounds and times of a scaled object; ``idle_replicas`` is None where it is not set."""

    threshold: float
    activation_threshold: float = 0.0
    min_replicas: int = 0
    max_replicas: int = 100
    idle_replicas: int | None = None
    cooldown_s: float = 300.0
    polling_interval_s: float = 30.0
    hpa_interval_s: float = 15.0
    up: Direction | None = DEFAULT_UP
    down: Direction | None = DEFAULT_DOWN
    pause_scale_in: bool = False
    pause_scale_out: bool = False
    force_activation: bool = False

    def __post_init__(self) -> None:
        require_positive("KEDA", "threshold", self.threshold)
        require_non_negative("KEDA", "cooldown_s", self.cooldown_s)
        require_positive("KEDA", "polling_interval_s", self.polling_interval_s)
        require_positive("KEDA", "hpa_interval_s", self.hpa_interval_s)
        if self.idle_replicas is not None and not 0 <= self.idle_replicas < self.min_replicas:
            raise ValueError(
                f"KEDA: idle_replicas must be at least 0 and below min_replicas "
                f"({self.min_replicas}), got {self.idle_replicas}"
            )

    @property
    def hpa(self) -> HpaRules:
        """Rules of the HPA that KEDA makes, which never goes to 0."""
        return HpaRules(
            min_replicas=max(self.min_replicas, 1),
            max_replicas=self.max_replicas,
            up=self.up,
            down=self.down,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaMemory:
    """Time of the last activity that was acted on, and the memory of the HPA."""

    last_active_s: float | None = None
    hpa: HpaMemory | None = None


def executor_step(
    rules: KedaRules, last_active_s: float | None, now_s: float, current: int, *, is_active: bool
) -> tuple[int, float | None]:
    """Wake, put to sleep or keep; return the replicas and the time of the last activity."""
    idle = rules.idle_replicas
    wanted = current
    if is_active or rules.force_activation:
        last_active_s = now_s
        if current == 0 or (idle is not None and current < rules.min_replicas):
            wanted = max(rules.min_replicas, 1)
    elif (idle is not None and current > idle) or (current > 0 and rules.min_replicas == 0):
        if last_active_s is None or last_active_s + rules.cooldown_s < now_s:
            wanted = rules.min_replicas if idle is None else idle
    elif idle is None and current < rules.min_replicas:
        wanted = rules.min_replicas
    paused = rules.pause_scale_out if wanted > current else rules.pause_scale_in
    return (current if paused else wanted), last_active_s


def keda_step(
    rules: KedaRules, memory: KedaMemory, now_s: float, current: int, value: float
) -> tuple[int, KedaMemory, str]:
    """Let KEDA act at its polls, the HPA at its ticks; return replicas, memory and who acted."""
    acted = []
    replicas = current
    if now_s % rules.polling_interval_s == 0:
        is_active = value > rules.activation_threshold
        replicas, last = executor_step(
            rules, memory.last_active_s, now_s, current, is_active=is_active
        )
        memory = replace(memory, last_active_s=last)
        if replicas != current:
            acted.append("keda")
    if now_s % rules.hpa_interval_s == 0:
        proposal = by_average_value(value, rules.threshold, replicas, rules.hpa.tolerance)
        decision, hpa_memory = hpa_step(rules.hpa, memory.hpa, now_s, replicas, [proposal])
        memory = replace(memory, hpa=hpa_memory)
        if decision.replicas != replicas:
            acted.append("hpa")
            replicas = decision.replicas
    return replicas, memory, "+".join(acted)
