"""Small fleets for tests."""

from dataclasses import dataclass

import numpy as np

from des.serving.batch_times import BatchTimes
from des.serving.fleet_settings import (
    Engine,
    ScalingLimits,
    Slo,
    StartDelay,
)
from des.serving.fleet_world import Decision, World
from des.serving.requests import Request

SECOND = BatchTimes(
    base_s=1.0,
    per_prompt_token_s=0.0,
    per_prompt_context_s=0.0,
    per_request_s=0.0,
    per_context_s=0.0,
)
"""An iteration takes a second."""
GROWING = BatchTimes(
    base_s=0.01,
    per_prompt_token_s=1e-4,
    per_prompt_context_s=1e-8,
    per_request_s=1e-3,
    per_context_s=1e-6,
    per_square_request_s=1e-6,
    per_mean_context_s=-5e-7,
)


def request(number: int, arrival_s: float, prompt: int = 100, output: int = 9) -> Request:
    """One request."""
    return Request(
        request_id=number, arrival_s=arrival_s, prompt_tokens=prompt, output_tokens=output
    )


def engine(times=GROWING, **changes):
    """A small engine."""
    settings = {
        "times": times,
        "kv_capacity_tokens": 2000,
        "kv_bytes_per_token": 1e6,
        "max_batch_size": 16,
        "chunk_tokens": 128,
        "num_gpus": 2,
    }
    return Engine(**(settings | changes))


def fleet_world(requests, initial, **changes):
    """A fleet with a decision a second and starts of 2.5 s."""
    settings = {
        "requests": tuple(requests),
        "engine": engine(),
        "initial": initial,
        "slo": Slo(ttft_s=0.5, gap_s=0.1),
        "start": StartDelay(load_s=2.5),
        "limits": ScalingLimits(max_total=8),
        "decision_interval_s": 1.0,
        "transfer_bytes_per_s": 1e9,
    }
    return World(**(settings | changes))


def drawn_stream(seed, num=60, rate_per_s=6.0):
    """Requests of random sizes at a constant rate."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / rate_per_s, num))
    return [
        request(number, float(at_s), int(rng.integers(1, 600)), int(rng.integers(1, 90)))
        for number, at_s in enumerate(arrivals)
    ]


@dataclass(frozen=True)
class Drawn:
    """A policy that decides at random."""

    seed: int

    def first_memory(self, world):
        """A generator."""
        return np.random.default_rng(self.seed)

    def decide(self, view, memory):
        """Change each pool by -2 to 2, and migrate now and then."""
        counts = {
            name: max(0, pool.ordered + int(memory.integers(-2, 3)))
            for name, pool in view.pools.items()
        }
        return Decision(counts=counts, migrate=int(memory.integers(-1, 2))), memory


@dataclass(frozen=True)
class Planned:
    """A policy that follows a list of counts, and keeps the last."""

    counts: tuple[dict[str, int], ...]
    migrate: int = 0

    def first_memory(self, world):
        """Decisions so far."""
        return 0

    def decide(self, view, memory):
        """Take the next counts."""
        counts = self.counts[min(memory, len(self.counts) - 1)]
        return Decision(counts=counts, migrate=self.migrate if memory == 0 else 0), memory + 1
