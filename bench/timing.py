"""Times of calls: rounds in which every contestant has its turn, medians over the rounds.

What is compiled, loaded or cached with a first call is timed apart from the rounds.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Precision of the measurement; ``is_quick`` is for tests, its figures mean nothing."""

    num_rounds: int = 7
    turn_s: float = 0.5
    is_quick: bool = False


FULL = Effort()
QUICK = Effort(num_rounds=1, turn_s=0.0, is_quick=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """Something to time; a call does ``num_items`` of what is counted."""

    name: str
    call: Callable[[], object]
    num_items: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds for one item in each round, on the clock of the wall and of all cores together.

    ``first_call_s`` is the time of the whole first call, which is not in the rounds.
    """

    name: str
    first_call_s: float
    wall_s: tuple[float, ...]
    cpu_s: tuple[float, ...]

    @property
    def items_per_s(self) -> float:
        """Median rate on the wall clock."""
        return 1.0 / statistics.median(self.wall_s)

    @property
    def items_per_cpu_s(self) -> float:
        """Median rate on the clock that only runs while this process computes."""
        return 1.0 / statistics.median(self.cpu_s)

    @property
    def spread_fraction(self) -> float:
        """Half of the range between the slowest and the fastest round, relative to the median."""
        return (max(self.wall_s) - min(self.wall_s)) / (2.0 * statistics.median(self.wall_s))


def race(contestants: Sequence[Contestant], effort: Effort) -> tuple[Timing, ...]:
    """Time the contestants in turn, round by round, so that all meet the machine in all moods."""
    first_calls_s = [_seconds(each, 1)[0] * each.num_items for each in contestants]
    nums_calls = [_num_calls(each, effort.turn_s) for each in contestants]
    rounds = [
        [_seconds(each, num_calls) for each, num_calls in zip(contestants, nums_calls, strict=True)]
        for _ in range(effort.num_rounds)
    ]
    return tuple(
        Timing(
            name=each.name,
            first_call_s=first_call_s,
            wall_s=tuple(wall_s for wall_s, _ in turns),
            cpu_s=tuple(cpu_s for _, cpu_s in turns),
        )
        for each, first_call_s, turns in zip(
            contestants, first_calls_s, zip(*rounds, strict=True), strict=True
        )
    )


def speed_ratio(fast: Timing, slow: Timing) -> float:
    """Speed-up by CPU time: median over the rounds, each compared with itself."""
    pairs = zip(fast.cpu_s, slow.cpu_s, strict=True)
    return statistics.median(slow_s / fast_s for fast_s, slow_s in pairs)


def _num_calls(contestant: Contestant, turn_s: float) -> int:
    """Return how many calls fill a turn."""
    if not turn_s:
        return 1
    call_s = _seconds(contestant, 1)[0] * contestant.num_items
    return max(1, math.ceil(turn_s / call_s))


def _seconds(contestant: Contestant, num_calls: int) -> tuple[float, float]:
    """Wall and CPU time of one item. [s]"""
    wall_s, cpu_s = -time.perf_counter(), -time.process_time()
    for _ in range(num_calls):
        contestant.call()
    wall_s, cpu_s = wall_s + time.perf_counter(), cpu_s + time.process_time()
    num_items = num_calls * contestant.num_items
    return wall_s / num_items, cpu_s / num_items
