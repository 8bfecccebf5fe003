"""An inference fleet that grows and shrinks: world, what a policy sees and decides, history."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from des.base.checks import require_known, require_non_negative, require_positive, require_seed
from des.serving.fleet_links import FleetSites
from des.serving.fleet_routers import ROUTERS
from des.serving.fleet_settings import Engine, ScalingLimits, Slo, StartDelay
from des.serving.instance_life import Span
from des.serving.requests import Request, require_in_order

PROMPT, TOKEN, MIXED = "prompt", "token", "mixed"
LAYOUTS_OF_POOLS = ((PROMPT, TOKEN), (MIXED,))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A stream of requests, a fleet to begin with, and the rules of its scaling."""

    requests: Sequence[Request]
    engine: Engine
    initial: Mapping[str, int]
    """Instances of each pool at time 0: prompt and token, or mixed."""
    slo: Slo
    start: StartDelay = field(default_factory=StartDelay)
    limits: ScalingLimits = field(default_factory=ScalingLimits)
    decision_interval_s: float = 10.0
    transfer_bytes_per_s: float = 50e9
    transfer_latency_s: float = 0.0
    horizon_s: float | None = None
    """Time at which the run ends; requests that are not finished are counted as such."""
    transfers_contend: bool = True
    """Whether the transfers of an instance wait for each other."""
    router: str = "least_work"
    """Rule of `des.serving.fleet_routers.ROUTERS` by which requests are placed."""
    sites: FleetSites | None = None
    """Domains of pools (None: all in one, with transfers at ``transfer_bytes_per_s``)."""
    engines: Mapping[str, Engine] = field(default_factory=dict)
    """Engines of pools that have others than ``engine``."""
    rejected: Sequence[Request] = ()
    """Requests rejected on arrival, see `admitted`; none of them meets the SLO."""

    def __post_init__(self) -> None:
        require_in_order("requests", self.requests)
        if tuple(self.initial) not in LAYOUTS_OF_POOLS:
            raise ValueError(
                f"world: initial must have the pools prompt and token, or mixed, "
                f"got {list(self.initial)}"
            )
        for pool, num in self.initial.items():
            if num < self.limits.min_per_pool:
                raise ValueError(
                    f"world: initial {pool} must be at least min_per_pool "
                    f"({self.limits.min_per_pool}), got {num}"
                )
        if sum(self.initial.values()) > self.limits.max_total:
            raise ValueError(
                f"world: initial must be at most max_total ({self.limits.max_total}) in all, "
                f"got {sum(self.initial.values())}"
            )
        require_positive("world", "decision_interval_s", self.decision_interval_s)
        if self.sites is not None and set(self.sites.domain_of) != set(self.initial):
            raise ValueError(
                f"world: sites must have a domain of each of the pools {list(self.initial)}, "
                f"got {list(self.sites.domain_of)}"
            )
        require_known("world: router must be a known name, got", self.router, ROUTERS)
        if self.horizon_s is not None:
            require_positive("world", "horizon_s", self.horizon_s)
        require_positive("world", "transfer_bytes_per_s", self.transfer_bytes_per_s)
        require_non_negative("world", "transfer_latency_s", self.transfer_latency_s)
        if self.rejected:
            require_in_order("rejected", self.rejected)
        if not set(self.engines) <= set(self.initial):
            raise ValueError(
                f"world: engines must be of the pools {list(self.initial)}, "
                f"got {list(self.engines)}"
            )
        room = min(one.most_tokens for one in self.all_engines)
        for each in self.requests:
            if each.prompt_tokens + each.output_tokens > room:
                raise ValueError(
                    f"request {each.request_id}: prompt_tokens and output_tokens must be at most "
                    f"{room} together, the KV memory without a token for each of a full batch, "
                    f"got {each.prompt_tokens + each.output_tokens}"
                )

    def engine_of(self, pool: str) -> Engine:
        """Engine of the instances that are ordered for a pool."""
        return self.engines.get(pool, self.engine)

    @property
    def all_engines(self) -> tuple[Engine, ...]:
        """Engines of all pools."""
        return tuple(map(self.engine_of, self.initial))


def admitted(
    requests: Sequence[Request], *engines: Engine
) -> tuple[tuple[Request, ...], tuple[Request, ...]]:
    """Divide requests into those that fit into the KV memory of any instance, and the rejected."""
    room = min(engine.most_tokens for engine in engines)
    fits = [each.prompt_tokens + each.output_tokens <= room for each in requests]
    pairs = list(zip(requests, fits, strict=True))
    return tuple(each for each, fit in pairs if fit), tuple(each for each, fit in pairs if not fit)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """One pool at a decision."""

    active: int
    starting: int
    draining: int
    waiting: int
    """Requests that hold no memory yet, of active instances, as the next two."""
    waiting_tokens: int
    """Prompt tokens that are not read yet."""
    running: int
    """Requests that are being read or written."""
    kv_fraction: float
    """Share of the KV memory of active instances in use."""
    busy_fraction: float
    """Mean share of the last interval in which active instances worked."""
    start_left_s: float
    """Mean time that starting instances still need; 0 where there is none."""

    @property
    def ordered(self) -> int:
        """Instances that serve or will serve: active and starting."""
        return self.active + self.starting


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The fleet at a decision, and what happened in the interval before it."""

    now_s: float
    interval_s: float
    pools: Mapping[str, PoolView]
    arrivals: int
    prompt_tokens: int
    """Prompt tokens of these arrivals."""
    finished: int
    output_tokens: int
    """Output tokens of requests that finished."""
    ttft_s: float | None
    """Mean time to the first token of those that came; None: there were none."""
    ttft_p95_s: float | None
    gap_s: float | None
    """Mean gap between tokens."""
    attainment: float | None
    """Share of finished requests within the SLO."""
    slo: Slo
    engine: Engine
    limits: ScalingLimits
    engines: Mapping[str, Engine] = field(default_factory=dict)
    """Engines of pools that have others than ``engine``."""

    def engine_of(self, pool: str) -> Engine:
        """Engine of the instances of a pool."""
        return self.engines.get(pool, self.engine)

    def __post_init__(self) -> None:
        found = {name: getattr(self, name) for name in _METRICS}
        for pool, each in self.pools.items():
            found |= {f"{pool} {name}": getattr(each, name) for name in _POOL_METRICS}
        for name, value in found.items():
            if value is not None and not math.isfinite(value):
                raise ValueError(f"view: metrics must be finite, got {value!r} as {name}")


_METRICS = ("ttft_s", "ttft_p95_s", "gap_s", "attainment")
_POOL_METRICS = ("kv_fraction", "busy_fraction", "start_left_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Instances that each pool should have, and how many change from prompt to token (or back)."""

    counts: Mapping[str, int]
    migrate: int = 0
    why: str = ""


class ScalingPolicy(Protocol):
    """A rule that sizes pools; it remembers what it returns, and nothing else."""

    def first_memory(self, world: World) -> object:
        """Memory before the first decision."""
        ...

    def decide(self, view: View, memory: object) -> tuple[Decision, object]:
        """Size the pools and return the memory for the next decision."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRow:
    """Course of one request; a time of None was not reached."""

    request: Request
    first_token_s: float | None
    end_s: float | None
    longest_gap_s: float
    num_restarts: int
    num_swaps: int
    cached_tokens: int
    """Prompt tokens that a cache spared it."""
    prompt_instance: int
    token_instance: int

    @property
    def ttft_s(self) -> float | None:
        """Time to the first token."""
        return None if self.first_token_s is None else self.first_token_s - self.request.arrival_s

    @property
    def e2e_s(self) -> float | None:
        """Time to the last token."""
        return None if self.end_s is None else self.end_s - self.request.arrival_s

    def is_good(self, slo: Slo) -> bool:
        """Whether it ended within the SLO."""
        ttft_s = self.ttft_s
        if ttft_s is None or self.end_s is None:
            return False
        return ttft_s <= slo.ttft_s and self.longest_gap_s <= slo.gap_s


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRow:
    """Life of one instance; times of None were not reached. [s]"""

    number: int
    pool: str
    """Last pool that it was in."""
    server: int
    num_gpus: int
    ordered_s: float
    active_s: float | None
    drained_from_s: float | None
    stopped_s: float | None
    busy_s: float
    spans: tuple[Span, ...]
    """States that it was in, with start and end."""

    def in_state_s(self, state: str) -> float:
        """Time in a state."""
        return sum((end_s - start_s for name, start_s, end_s in self.spans if name == state), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Requests, instances and decisions of a run, and the gaps between tokens by their length."""

    world: World
    requests: tuple[FleetRow, ...]
    instances: tuple[InstanceRow, ...]
    decisions: tuple[tuple[View, Decision], ...]
    gap_counts: tuple[int, ...]
    """Numbers of gaps in bins, see `des.serving.gaps`."""
    num_flaps: int
    log: tuple[str, ...]
    end_s: float


def require_run_seed(seed: int) -> None:
    """Refuse a seed that random numbers cannot be keyed by."""
    require_seed("run", "seed", seed)
