"""Advisory policy: its decisions are recorded next to those of the policy that sizes the pools."""

from des.serving.fleet_world import Decision, ScalingPolicy, View, World


class Advised:
    """Policy that follows one and records the decisions of another."""

    def __init__(self, policy: ScalingPolicy, adviser: ScalingPolicy) -> None:
        self.policy, self.adviser = policy, adviser
        self.lines: list[str] = []

    def first_memory(self, world: World) -> object:
        """Memories of both."""
        self.lines = ["now_s,pool,followed,advised,why"]
        return self.policy.first_memory(world), self.adviser.first_memory(world)

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Decide by the first; record the second."""
        assert isinstance(memory, tuple)
        decision, first = self.policy.decide(view, memory[0])
        advice, second = self.adviser.decide(view, memory[1])
        why = advice.why.replace('"', "'")
        for pool in view.pools:
            counts = f"{decision.counts.get(pool, '')},{advice.counts.get(pool, '')}"
            self.lines.append(f'{view.now_s:g},{pool},{counts},"{why}"')
        return decision, (first, second)

    def csv_bytes(self) -> bytes:
        """Records as CSV."""
        return ("\n".join(self.lines) + "\n").encode()
