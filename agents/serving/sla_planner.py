"""NVIDIA Dynamo's SLA planner as a pure step: sizes prefill and decode from measured profiles.

Source: the planner of ai-dynamo 0.6.1 (Apache-2.0) as its rules are documented; its prefill look-up
is linear here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from des.base.checks import require_count, require_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerProfile:
    """Measured prefill by prompt tokens, and decode by context and share of the KV memory."""

    isl: tuple[float, ...]
    ttft_ms: tuple[float, ...]
    prefill_tokens_per_s_per_gpu: tuple[float, ...]
    kv_shares: tuple[float, ...]
    contexts: tuple[float, ...]
    itl_ms: tuple[tuple[float, ...], ...]
    """Rows of contexts, columns of KV shares."""
    decode_tokens_per_s_per_gpu: tuple[tuple[float, ...], ...]
    max_kv_tokens: float

    def __post_init__(self) -> None:
        for name in ("isl", "kv_shares", "contexts"):
            values: tuple[float, ...] = getattr(self, name)
            if len(values) < 2 or any(after <= before for before, after in pairwise(values)):
                raise ValueError(f"planner profile: {name} must be at least 2 increasing numbers")
        require_positive("planner profile", "max_kv_tokens", self.max_kv_tokens)

    def prefill_ttft_ms(self, prompt_tokens: float) -> float:
        """Time to the first token of a prompt alone. [ms]"""
        return float(np.interp(prompt_tokens, self.isl, self.ttft_ms))

    def prefill_rate(self, prompt_tokens: float) -> float:
        """Prompt tokens per second and GPU."""
        return float(np.interp(prompt_tokens, self.isl, self.prefill_tokens_per_s_per_gpu))

    def gap_ms(self, context: float, kv_share: float) -> float:
        """Gap between tokens at the nearest point of the grid. [ms]"""
        row = _nearest_place(self.contexts, context)
        return self.itl_ms[row][_nearest_place(self.kv_shares, kv_share)]

    def best_decode_rate(self, context: float, most_ms: float) -> float:
        """Tokens per second and GPU at the highest KV share whose gap is short enough."""
        row = _nearest_place(self.contexts, context)
        gaps = self.itl_ms[row]
        column = max((each for each, gap in enumerate(gaps) if gap <= most_ms), default=0)
        return self.decode_tokens_per_s_per_gpu[row][column]


def _nearest_place(grid: Sequence[float], value: float) -> int:
    """Nearest place in an even grid, half to even, within its ends."""
    step = (grid[-1] - grid[0]) / (len(grid) - 1)
    return min(max(round((value - grid[0]) / step), 0), len(grid) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerRules:
    """Targets, sizes of engines and the budget."""

    interval_s: float
    prefill_gpus: int
    decode_gpus: int
    ttft_ms: float
    itl_ms: float
    min_replicas: int
    gpu_budget: int
    corrects: bool = True

    def __post_init__(self) -> None:
        require_positive("SLA planner", "interval_s", self.interval_s)
        require_positive("SLA planner", "ttft_ms", self.ttft_ms)
        require_positive("SLA planner", "itl_ms", self.itl_ms)
        for name in ("prefill_gpus", "decode_gpus", "min_replicas", "gpu_budget"):
            require_count("SLA planner", name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerInterval:
    """Means over one interval; None where there was nothing to observe."""

    requests: float
    isl: float | None
    osl: float | None
    ttft_ms: float | None
    itl_ms: float | None
    request_duration_s: float | None
    decode_workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerFactors:
    """Observed over profiled times: of the first token, and of the gaps."""

    prefill: float = 1.0
    decode: float = 1.0


def sla_step(
    rules: PlannerRules, profile: PlannerProfile, factors: PlannerFactors, seen: PlannerInterval
) -> tuple[tuple[int, int] | None, PlannerFactors]:
    """Size both pools for an interval like the one just seen; None where nothing was observed."""
    if seen.isl is None or seen.osl is None or seen.ttft_ms is None or seen.itl_ms is None:
        return None, factors
    context = seen.isl + seen.osl / 2.0
    if rules.corrects:
        in_flight = seen.requests / max(seen.decode_workers, 1) * (seen.request_duration_s or 0.0)
        load = in_flight / rules.interval_s
        expected_ms = profile.gap_ms(context, load * context / profile.max_kv_tokens)
        factors = PlannerFactors(
            prefill=seen.ttft_ms / profile.prefill_ttft_ms(seen.isl),
            decode=seen.itl_ms / expected_ms,
        )
    prompt_rate = seen.requests * seen.isl / rules.interval_s * min(1.0, factors.prefill)
    prefill = math.ceil(prompt_rate / profile.prefill_rate(seen.isl) / rules.prefill_gpus)
    goal_ms = rules.itl_ms / factors.decode if factors.decode > 0 else math.inf
    token_rate = profile.best_decode_rate(context, goal_ms)
    decode = math.ceil(seen.requests * seen.osl / rules.interval_s / token_rate / rules.decode_gpus)
    return within_budget(rules, prefill, decode), factors


def within_budget(rules: PlannerRules, prefill: int, decode: int) -> tuple[int, int]:
    """Both counts at least the smallest, shrunk in proportion to the budget of GPUs.

    The smallest counts may pass the budget, as in the source.
    """
    least, budget = rules.min_replicas, rules.gpu_budget
    prefill, decode = max(prefill, least), max(decode, least)
    needed = prefill * rules.prefill_gpus + decode * rules.decode_gpus
    if needed > budget:
        prefill = max(least, round(prefill * budget / needed))
        decode = max(least, round((budget - prefill * rules.prefill_gpus) / rules.decode_gpus))
    return prefill, decode
