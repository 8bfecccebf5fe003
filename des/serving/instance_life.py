"""States of an instance over its life, and the order of events of equal times in a fleet."""

from dataclasses import dataclass, field

RUN_END, SENT, READY, ARRIVAL, CHECK, DECIDE = (kind << 50 for kind in (1, 2, 3, 4, 5, 6))
"""Ranks of events of number 0, in order: a run ends, KV arrives, an instance is ready, a request
arrives, a drain is looked at, a policy decides."""

STARTING, ACTIVE, DRAINING, STOPPED = "starting", "active", "draining", "stopped"
WARM, SLEEPING = "warm", "sleeping"
"""States of spare instances: ready to serve, or with the weights in the memory of the host."""
STATES = (STARTING, ACTIVE, DRAINING, WARM, SLEEPING)
"""States in which an instance has its GPUs."""

Span = tuple[str, float, float]
"""State, start and end. [s]"""


@dataclass(slots=True, eq=False)
class Life:
    """State of an instance now, since when, and the states before."""

    since_s: float
    state: str = STARTING
    spans: list[Span] = field(default_factory=list)

    def enter(self, state: str, now_s: float) -> None:
        """Change the state."""
        if now_s > self.since_s:
            self.spans.append((self.state, self.since_s, now_s))
        self.state, self.since_s = state, now_s

    def until(self, now_s: float) -> tuple[Span, ...]:
        """States that took time, the present one up to now; a stopped instance has ended.

        Examples
        --------
        >>> life = Life(2.0)
        >>> life.enter(ACTIVE, 5.0)
        >>> life.until(7.0)
        (('starting', 2.0, 5.0), ('active', 5.0, 7.0))
        """
        if self.state == STOPPED or now_s <= self.since_s:
            return tuple(self.spans)
        return (*self.spans, (self.state, self.since_s, now_s))
