"""Simulation of a fixed cluster of pools: arrivals, placements, KV transfers between instances."""

from des.clock import Clock
from des.serving.requests import Request
from scenarios.reproduce.serving_oracles.courses import call_at, simulate_arrivals
from scenarios.reproduce.serving_oracles.pool_instance import PoolInstance
from scenarios.reproduce.serving_oracles.pool_routers import make_router
from scenarios.reproduce.serving_oracles.pool_works import PhaseWork, RequestState, request_state
from scenarios.reproduce.serving_oracles.pool_world import PoolHistory, PoolWorld


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
