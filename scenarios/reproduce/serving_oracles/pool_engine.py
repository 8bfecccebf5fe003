"""Simulation of a fixed cluster of prompt, token and mixed pools that reserve memory as a whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from des.base.checks import require_non_negative, require_positive
from des.clock import Clock
from des.serving.requests import Request, require_in_order
from scenarios.reproduce.serving_oracles.courses import IterationTable, call_at, simulate_arrivals
from scenarios.reproduce.serving_oracles.pool_batches import BatchLimits
from scenarios.reproduce.serving_oracles.pool_instance import PoolInstance
from scenarios.reproduce.serving_oracles.pool_routers import RouterSettings, make_router
from scenarios.reproduce.serving_oracles.pool_works import PhaseWork, RequestState, request_state

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


def run_pools(world: PoolWorld) -> PoolHistory:
    """Simulate until every request is finished or nothing can happen any more."""
    cluster = _Cluster(world)
    simulate_arrivals(cluster.clock, world.requests, cluster.arrive)
    return cluster.history()


class _Cluster:
    def __init__(self, world: PoolWorld) -> None:
        self.world = world
        self.clock = Clock()
        self.states: list[RequestState] = []
        self.instances = [self._instance(place) for place in range(len(world.members))]
        self.router = make_router(world.router, self.instances, world.router_settings)

    def _instance(self, place: int) -> PoolInstance:
        member, world = self.world.members[place], self.world
        return PoolInstance(
            number=place,
            pool=member.pool,
            clock=self.clock,
            times=world.tables[member.hardware],
            limits=world.limits,
            is_orca=world.batching == "orca",
            capacity_bytes=member.memory_bytes,
            used_bytes=world.weights_bytes,
            promised_bytes=world.weights_bytes,
            finish=self._finish,
            become_idle=self._become_idle,
        )

    def arrive(self, request: Request) -> None:
        """Place a request that comes, and let its works arrive at their instances."""
        state = request_state(request, self.world.kv_bytes_per_token)
        first, second = self.router.place(state)
        self.states.append(state)
        state.prompt_place, state.token_place = first.number, second.number
        first.arrive(state.prompt)
        if first is second:
            first.arrive(state.token)

    def _finish(self, instance: PoolInstance, work: PhaseWork) -> None:
        """Give back what a finished work held; after a prompt its KV cache moves on."""
        state = work.state
        if work.is_prompt:
            instance.due_tokens -= work.cost
            if state.token_place != state.prompt_place:
                self._try_transfer(state)
            return
        held = state.prompt_bytes + work.memory_bytes
        instance.due_tokens -= 1
        instance.used_bytes -= held
        instance.promised_bytes -= held

    def _try_transfer(self, state: RequestState) -> None:
        """Reserve memory at the other instance and send, or try again later."""
        target = self.instances[state.token_place]
        now = self.clock.now
        if target.used_bytes + state.prompt_bytes > target.capacity_bytes:
            call_at(self.clock, now + self.world.retry_s, lambda: self._try_transfer(state))
            return
        target.used_bytes += state.prompt_bytes
        state.transfer_start_s = now
        rate = self.world.kv_transfer_bytes_per_s
        assert rate is not None
        sent_bytes = self.world.kv_bytes_per_token * state.prompt.cost
        call_at(self.clock, now + sent_bytes / rate, lambda: self._end_transfer(state))

    def _end_transfer(self, state: RequestState) -> None:
        source = self.instances[state.prompt_place]
        state.transfer_end_s = self.clock.now
        source.used_bytes -= state.prompt_bytes
        source.promised_bytes -= state.prompt_bytes
        self.instances[state.token_place].arrive(state.token)
        source.look_up()

    def _become_idle(self, instance: PoolInstance) -> None:
        self.router.release(instance)

    def history(self) -> PoolHistory:
        """Collect requests and busy times."""
        members = zip(self.world.members, self.instances, strict=True)
        return PoolHistory(
            requests=tuple(self.states),
            busy_s={member.name: instance.busy_s for member, instance in members},
        )
