"""Settings of a fleet: the engine of an instance, starts, limits of scaling, objectives."""

from dataclasses import dataclass

import numpy as np

from des.base.checks import require_count, require_non_negative, require_positive
from des.serving.batch_times import BatchTimes

GIVEN, FROM_PROFILE, FROM_SHAPES = "given", "profile", "shapes"
"""Origins of the times of an engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One instance: times, memory and limits of its batches, GPUs and their price."""

    times: BatchTimes
    kv_capacity_tokens: int
    kv_bytes_per_token: float
    max_batch_size: int = 256
    chunk_tokens: int = 2048
    num_gpus: int = 8
    usd_per_gpu_h: float = 0.0
    prefix_block_tokens: int = 0
    """Tokens of a block of the prefix cache (0: no cache)."""
    swap_bytes_per_s: float = 0.0
    """Rate at which KV memory of preempted requests moves to and from the host (0: read again)."""
    times_from: str = GIVEN
    """Origin of the times: given, a measured profile, or shapes."""

    def __post_init__(self) -> None:
        for name in ("kv_capacity_tokens", "max_batch_size", "chunk_tokens", "num_gpus"):
            require_count("engine", name, getattr(self, name))
        require_positive("engine", "kv_bytes_per_token", self.kv_bytes_per_token)
        require_non_negative("engine", "usd_per_gpu_h", self.usd_per_gpu_h)
        _require_whole("engine", "prefix_block_tokens", self.prefix_block_tokens)
        require_non_negative("engine", "swap_bytes_per_s", self.swap_bytes_per_s)
        times = self.times
        if times.per_request_s + 2 * times.per_square_request_s * self.max_batch_size < 0:
            raise ValueError(
                f"engine: max_batch_size must be at most "
                f"{int(-times.per_request_s / (2 * times.per_square_request_s))}, above which the "
                f"times fall with the batch, got {self.max_batch_size}"
            )
        if self.chunk_tokens <= self.max_batch_size:
            raise ValueError(
                f"engine: chunk_tokens must be above max_batch_size ({self.max_batch_size}), so "
                f"that prompts advance in a full batch, got {self.chunk_tokens}"
            )

    @property
    def most_tokens(self) -> int:
        """Most tokens of a request: the KV memory less one for each request of a full batch."""
        return self.kv_capacity_tokens - self.max_batch_size


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDelay:
    """Means of the three parts of a start, and the coefficient of variation of their sum."""

    provision_s: float = 0.0
    load_s: float = 10.0
    warm_up_s: float = 0.0
    variation: float = 0.0
    """Standard deviation over mean; the sum is lognormal, or constant at 0."""
    num_warm: int = 0
    """Drained instances that are kept ready to serve."""
    num_sleeping: int = 0
    """More of them whose weights are kept in the memory of the host."""
    wake_s: float = 3.0
    """Time until a sleeping instance serves."""
    sleeping_cost: float = 1.0
    """Share of the price of an instance that is paid while it sleeps."""

    def __post_init__(self) -> None:
        for name in ("provision_s", "load_s", "warm_up_s", "variation", "wake_s"):
            require_non_negative("start delay", name, getattr(self, name))
        for name in ("num_warm", "num_sleeping"):
            _require_whole("start delay", name, getattr(self, name))
        if not 0.0 <= self.sleeping_cost <= 1.0:
            raise ValueError(
                f"start delay: sleeping_cost must be within 0 and 1, got {self.sleeping_cost!r}"
            )

    @property
    def mean_s(self) -> float:
        """Mean time from the order to the first request."""
        return self.provision_s + self.load_s + self.warm_up_s

    def drawn_s(self, seed: int, number: int) -> float:
        """Draw the time of a start by the seed and the number of its instance. [s]"""
        if not self.variation or not self.mean_s:
            return self.mean_s
        variance = np.log1p(self.variation**2)
        rng = np.random.default_rng([seed, number])
        return float(self.mean_s * rng.lognormal(-variance / 2, np.sqrt(variance)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingLimits:
    """Bounds of counts and of their changes; times of 0 switch a rule off."""

    min_per_pool: int = 1
    max_total: int = 100
    max_per_pool: int | None = None
    """None: as many as there may be in all."""
    max_step: int = 100
    """Instances that a pool may gain or lose at a decision."""
    cooldown_s: float = 0.0
    """Time after a change in which a pool is not scaled down."""
    drain_timeout_s: float = 0.0
    """Time after which a draining instance gives up what it still has (0: never)."""
    drain_check_s: float = 0.0
    """Interval at which a draining instance is looked at (0: it stops at once)."""
    flap_window_s: float = 300.0
    drain_moves_out: bool = False
    """Whether a draining instance sends what it writes, with its KV memory, to other instances."""
    drains_soonest: bool = False
    """Whether those are drained that are expected to be empty first, not the least loaded."""
    packs_servers: bool = False
    """Whether instances share a server as far as its GPUs go; else each has one of its own."""

    def __post_init__(self) -> None:
        require_count("scaling limits", "min_per_pool", self.min_per_pool)
        require_count("scaling limits", "max_total", self.max_total)
        require_count("scaling limits", "max_step", self.max_step)
        most = self.max_total if self.max_per_pool is None else self.max_per_pool
        if not self.min_per_pool <= most <= self.max_total:
            raise ValueError(
                f"scaling limits: min_per_pool, max_per_pool and max_total must not decrease in "
                f"this order, got {self.min_per_pool}, {self.max_per_pool} and {self.max_total}"
            )
        for name in ("cooldown_s", "drain_timeout_s", "drain_check_s", "flap_window_s"):
            require_non_negative("scaling limits", name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """Longest time to the first token, and longest gap between tokens, of a good request."""

    ttft_s: float
    gap_s: float

    def __post_init__(self) -> None:
        require_positive("SLO", "ttft_s", self.ttft_s)
        require_positive("SLO", "gap_s", self.gap_s)


def _require_whole(owner: str, field: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{owner}: {field} must be a whole number of at least 0, got {value!r}")
