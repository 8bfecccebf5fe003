"""A cluster of prompt, token and mixed pools that reserve memory as a whole, and its history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from des.base.checks import require_non_negative, require_positive
from des.serving.requests import Request, require_in_order
from scenarios.reproduce.serving_oracles.iteration_times import IterationTable
from scenarios.reproduce.serving_oracles.pool_batches import BatchLimits
from scenarios.reproduce.serving_oracles.pool_routers import RouterSettings
from scenarios.reproduce.serving_oracles.pool_works import RequestState

POOLS = ("prompt", "token", None)
DEFAULT_ROUTER = RouterSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMember:
    """One instance of a cluster: its hardware, its pool and its memory."""

    name: int
    hardware: str
    pool: str | None
    memory_bytes: float

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            raise ValueError(
                f"instance {self.name}: pool must be one of {POOLS}, got {self.pool!r}"
            )
        require_positive(f"instance {self.name}", "memory_bytes", self.memory_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolWorld:
    """A fixed cluster, a stream of requests and the rules by which they are placed and batched.

    ``retry_s`` is the time after which a KV transfer that found no room is tried again.
    """

    requests: Sequence[Request]
    members: tuple[PoolMember, ...]
    tables: Mapping[str, IterationTable]
    kv_bytes_per_token: int
    weights_bytes: float
    batching: str
    limits: BatchLimits
    router: str
    router_settings: RouterSettings = DEFAULT_ROUTER
    kv_transfer_bytes_per_s: float | None = None
    retry_s: float = 1.0

    def __post_init__(self) -> None:
        require_in_order("requests", self.requests)
        if self.batching not in ("splitwise", "orca"):
            raise ValueError(f"batching must be splitwise or orca, got {self.batching!r}")
        require_positive("serving world", "retry_s", self.retry_s)
        require_positive("serving world", "kv_bytes_per_token", self.kv_bytes_per_token)
        require_non_negative("serving world", "weights_bytes", self.weights_bytes)
        for member in self.members:
            if member.hardware not in self.tables:
                raise ValueError(
                    f"instance {member.name}: hardware must have an iteration table, one of "
                    f"{sorted(self.tables)}, got {member.hardware!r}"
                )
        if self.kv_transfer_bytes_per_s is None:
            if self.router.startswith(("kv_", "mixed")):
                raise ValueError(
                    f"router {self.router}: kv_transfer_bytes_per_s must be given, got none"
                )
        else:
            require_positive(
                "serving world", "kv_transfer_bytes_per_s", self.kv_transfer_bytes_per_s
            )
        self._require_room()

    def _require_room(self) -> None:
        """Refuse a request that no instance could ever hold, which would wait for ever."""
        room = max(member.memory_bytes for member in self.members) - self.weights_bytes
        largest = max(each.prompt_tokens + each.output_tokens for each in self.requests)
        if largest * self.kv_bytes_per_token > room:
            raise ValueError(
                f"serving world: memory_bytes must hold the weights and the largest request, "
                f"{self.weights_bytes + largest * self.kv_bytes_per_token:g} bytes, "
                f"got {room + self.weights_bytes:g}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolHistory:
    """All requests in order of arrival, and busy times of instances by their names. [s]"""

    requests: tuple[RequestState, ...]
    busy_s: Mapping[int, float]
