"""Rules that size pools for a load to come: SLA planner, trend, peaks, one that has the trace."""

import bisect
import math
from dataclasses import dataclass, replace
from itertools import pairwise

from agents.serving.capacity import Load, pools_needed
from agents.serving.observed import load_of, pool_requests
from agents.serving.sla_planner import PlannerFactors, PlannerRules, within_budget
from des.base.checks import require_fraction, require_positive
from des.serving.fleet_world import MIXED, PROMPT, TOKEN, Decision, View, World


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaPlanner:
    """Dynamo's SLA planner on the times of the engine: corrected by what is observed.

    The load of the next interval is that of the last one, or, with ``trend``, an autoregression of
    first differences, ARIMA(1, 1, 0), fitted on the intervals so far.
    """

    adjustment_s: float = 60.0
    trend: bool = False
    margin: float = 1.0
    """Load planned for over the load expected."""

    def __post_init__(self) -> None:
        require_positive("SLA planner", "adjustment_s", self.adjustment_s)
        require_positive("SLA planner", "margin", self.margin)

    def first_memory(self, world: World) -> object:
        """Time of the last plan, the load so far and rates of requests."""
        return -self.adjustment_s, None, ()

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Plan once an adjustment interval; shrink only if one instance fewer can bear the load.

        Counts stay while requests wait or run without any first token; an idle fleet shrinks.
        """
        assert isinstance(memory, tuple)
        last_s, before, rates = memory
        load = load_of(view, before)
        rates = (*rates, load.requests_per_s)[-60:]
        counts = {name: pool.ordered for name, pool in view.pools.items()}
        starting = any(pool.starting for pool in view.pools.values())
        is_unseen = view.ttft_s is None and any(pool_requests(one) for one in view.pools.values())
        if view.now_s - last_s < self.adjustment_s or is_unseen or starting:
            why = "an instance starts" if starting else "between plans"
            return Decision(counts=counts, why=why), (last_s, load, rates)
        num = max(1, round(self.adjustment_s / view.interval_s))
        mean = sum(rates[-num:]) / len(rates[-num:])
        rate = max(autoregressed(rates), 0.0) if self.trend else mean
        factors = self._factors(view, load)
        wanted = self._wanted(view, replace(load, requests_per_s=rate * self.margin), factors)
        why = f"corrections {factors.prefill:.2f}, {factors.decode:.2f}; {rate:.2f} requests/s"
        return Decision(counts=wanted, why=why), (view.now_s, load, rates)

    @staticmethod
    def _factors(view: View, load: Load) -> PlannerFactors:
        first, last = (PROMPT, TOKEN) if PROMPT in view.pools else (MIXED, MIXED)
        times = view.engine_of(first).times
        expected_s = times.base_s + times.per_prompt_token_s * load.prompt_tokens
        writers, times = view.pools[last], view.engine_of(last).times
        batch = max(1, round(writers.running / max(writers.active, 1)))
        context = load.prompt_tokens + load.output_tokens / 2.0
        gap_s = times.first_s(batch, math.ceil(batch * context))
        return PlannerFactors(
            prefill=(view.ttft_s or expected_s) / expected_s,
            decode=max((view.gap_s or gap_s) / gap_s, 1e-3),
        )

    @staticmethod
    def _wanted(view: View, load: Load, factors: PlannerFactors) -> dict[str, int]:
        slo = replace(view.slo, gap_s=max(view.slo.gap_s / factors.decode, 1e-6))
        needed = pools_needed(view, slo, load)
        for name, pool in view.pools.items():
            if needed[name] < pool.ordered:
                needed[name] = pool.ordered - 1
        if PROMPT not in needed:
            return needed
        prefill_gpus, decode_gpus = (view.engine_of(each).num_gpus for each in (PROMPT, TOKEN))
        rules = PlannerRules(
            interval_s=view.interval_s,
            prefill_gpus=prefill_gpus,
            decode_gpus=decode_gpus,
            ttft_ms=view.slo.ttft_s * 1e3,
            itl_ms=view.slo.gap_s * 1e3,
            min_replicas=view.limits.min_per_pool,
            gpu_budget=view.limits.max_total * max(prefill_gpus, decode_gpus),
        )
        prefill, decode = within_budget(rules, needed[PROMPT], needed[TOKEN])
        return {PROMPT: prefill, TOKEN: decode}


def autoregressed(values: tuple[float, ...]) -> float:
    """Next value by ARIMA(1, 1, 0), its coefficient by least squares, within (-1, 1).

    Examples
    --------
    >>> round(autoregressed((1.0, 2.0, 3.0, 4.0)), 2)
    4.99
    """
    steps = [after - before for before, after in pairwise(values)]
    if len(steps) < 2:
        return values[-1]
    over = sum(before * after for before, after in pairwise(steps))
    under = sum(step * step for step in steps[:-1])
    slope = min(max(over / under, -0.99), 0.99) if under else 0.0
    return values[-1] + slope * steps[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictive:
    """Holt's linear smoothing of the rate, looked ahead by the time of a start."""

    level_weight: float = 0.4
    trend_weight: float = 0.1
    margin: float = 1.2

    def __post_init__(self) -> None:
        require_fraction("predictive", "level_weight", self.level_weight)
        require_fraction("predictive", "trend_weight", self.trend_weight)
        require_positive("predictive", "margin", self.margin)

    def first_memory(self, world: World) -> object:
        """Time of a start; level, trend and load so far."""
        return world.start.mean_s, None, 0.0, None

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Size for the rate expected when what is ordered now is ready."""
        assert isinstance(memory, tuple)
        start_s, level, trend, before = memory
        load = load_of(view, before)
        rate = load.requests_per_s
        if level is None:
            level = rate
        expected = level + trend
        after = expected + self.level_weight * (rate - expected)
        trend += self.trend_weight * (after - level - trend)
        ahead = after + trend * (start_s + view.interval_s) / view.interval_s
        smooth = _smooth(before, load, max(ahead, 0.0) * self.margin)
        counts = pools_needed(view, view.slo, smooth)
        return Decision(counts=counts, why=f"{ahead:.2f} requests/s ahead"), (
            start_s,
            after,
            trend,
            smooth,
        )


def _smooth(before: Load | None, load: Load, requests_per_s: float) -> Load:
    """Load at a rate, with smoothed means of tokens."""
    if before is None:
        return replace(load, requests_per_s=requests_per_s)
    return Load(
        requests_per_s=requests_per_s,
        prompt_tokens=0.8 * before.prompt_tokens + 0.2 * load.prompt_tokens,
        output_tokens=0.8 * before.output_tokens + 0.2 * load.output_tokens,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakHold:
    """Sized for a share of the highest rate of the last ten minutes."""

    window_s: float = 600.0
    margin: float = 0.75

    def __post_init__(self) -> None:
        require_positive("peak", "window_s", self.window_s)
        require_positive("peak", "margin", self.margin)

    def first_memory(self, world: World) -> object:
        """Times and rates within the window, and the load so far."""
        return (), None

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Hold what the highest rate needs until it is older than the window."""
        assert isinstance(memory, tuple)
        seen, before = memory
        load = load_of(view, before)
        now = view.now_s, load.requests_per_s
        seen = (*(one for one in seen if one[0] > view.now_s - self.window_s), now)
        peak = max(rate for _, rate in seen)
        smooth = _smooth(before, load, peak * self.margin)
        counts = pools_needed(view, view.slo, smooth)
        return Decision(counts=counts, why=f"at most {peak:.2f} requests/s"), (seen, smooth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """A rule that has the trace: it sizes for the most that comes while an order starts."""

    window_s: float = 5.0

    def first_memory(self, world: World) -> object:
        """Arrivals, and sums of tokens up to each."""
        prompts, outputs = [0], [0]
        for one in world.requests:
            prompts.append(prompts[-1] + one.prompt_tokens)
            outputs.append(outputs[-1] + one.output_tokens)
        arrivals = [one.arrival_s for one in world.requests]
        return world.start.mean_s, arrivals, prompts, outputs

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Size for each window up to the next decision after a start, and take the most."""
        assert isinstance(memory, tuple)
        start_s, arrivals, prompts, outputs = memory
        counts = dict.fromkeys(view.pools, view.limits.min_per_pool)
        until_s = view.now_s + start_s + 2.0 * view.interval_s
        at_s = max(view.now_s - self.window_s, 0.0)
        while at_s < until_s:
            low = bisect.bisect_left(arrivals, at_s)
            high = bisect.bisect_left(arrivals, at_s + self.window_s)
            if high > low:
                load = Load(
                    requests_per_s=(high - low) / self.window_s,
                    prompt_tokens=(prompts[high] - prompts[low]) / (high - low),
                    output_tokens=(outputs[high] - outputs[low]) / (high - low),
                )
                needed = pools_needed(view, view.slo, load)
                counts = {name: max(num, needed[name]) for name, num in counts.items()}
            at_s += self.window_s
        return Decision(counts=counts, why="the most to come"), memory
