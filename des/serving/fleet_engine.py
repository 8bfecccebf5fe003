"""Simulation of a fleet: requests are placed, read, sent and written while a policy sizes pools."""

from collections.abc import Iterable
from functools import partial

import numpy as np
import simpy

from des.clock import Clock
from des.serving.fleet_instance import FleetInstance
from des.serving.fleet_links import FleetLinks
from des.serving.fleet_observation import CourseLog
from des.serving.fleet_requests import FleetRequest
from des.serving.fleet_routers import ROUTERS, RouterTurn
from des.serving.fleet_scaling import ScaledFleet, run_policy
from des.serving.fleet_servers import Servers
from des.serving.fleet_settings import Engine
from des.serving.fleet_world import (
    PROMPT,
    FleetRow,
    History,
    ScalingPolicy,
    World,
    require_run_seed,
)
from des.serving.instance_life import ARRIVAL, SENT


def run(world: World, policy: ScalingPolicy, seed: int = 0) -> History:
    """Simulate until every request is finished, deciding at each interval.

    Raises
    ------
    ValueError
        If the policy decides about a pool that there is not.
    """
    require_run_seed(seed)
    return run_policy(Fleet(world, seed), policy)


class Fleet(ScaledFleet):
    """A fleet whose instances are simulated on SimPy's clock."""

    def __init__(
        self,
        world: World,
        seed: int = 0,
        *,
        clock: Clock | None = None,
        servers: Servers | None = None,
    ) -> None:
        self.router = ROUTERS[world.router]
        self.turns = {
            pool: RouterTurn(number=0, rng=np.random.default_rng([seed, number, 7]))
            for number, pool in enumerate(world.initial)
        }
        self.requests = [
            FleetRequest(each, number, each.prompt_tokens, each.prompt_tokens)
            for number, each in enumerate(world.requests)
        ]
        clock = clock or Clock()
        self.links = None if world.sites is None else FleetLinks(clock, world.sites)
        self.course = CourseLog(self.requests, world.slo)
        super().__init__(world, self.course, seed, clock, servers)
        if self.links is not None and self.links.has_weights:
            self.manager.load_weights = self.links.load_weights
        self.clock.process(self._arrivals())

    def advance(self, until: simpy.Event) -> None:
        """Simulate until an event of the clock."""
        self.clock.run(until=until)

    def make_instance(
        self, engine: Engine, pool: str, number: int, ordered_s: float, ready_s: float
    ) -> FleetInstance:
        """Make an instance that starts."""
        return FleetInstance(
            number=number,
            pool=pool,
            clock=self.clock,
            engine=engine,
            ordered_s=ordered_s,
            ready_s=ready_s,
            is_read=self._is_read,
            is_done=self.course.is_done,
            is_empty=self.manager.drained,
        )

    def _arrivals(self) -> simpy.events.ProcessGenerator:
        for one in self.requests:
            yield self.clock.at(one.request.arrival_s, ARRIVAL)
            self.place(one, self.first_pool)

    def place(self, one: FleetRequest, pool: str) -> None:
        """Let a request arrive at the instance that the router chooses."""
        active = self.members[pool]
        if not active:
            self.held[pool].append(one)
            return
        turn = self.turns[pool]
        place = self.router(active, one, pool == PROMPT, turn)
        turn.number += 1
        if not one.to_read:
            one.token_instance = active[place].number
        active[place].arrive(one)

    def place_again(self, given: Iterable[FleetRequest]) -> None:
        """Place requests that an instance has given up."""
        for one in given:
            self.place(one, self.first_pool if one.to_read else self.last_pool)

    def _is_read(self, instance: FleetInstance, one: FleetRequest) -> bool:
        """Keep a request, or send its KV memory on: from a prompt pool, or where all move out."""
        if instance.pool != PROMPT and not (instance.moves_out and self.members[self.last_pool]):
            return True
        now, world = self.clock.now, self.world
        one.begin_pause(now)
        instance.leaving += one.held
        if self.links is not None and self.links.are_apart(instance.pool, self.last_pool):
            num_bytes = instance.engine.kv_bytes_per_token * one.held
            arrived = partial(self._sent, instance, one)
            self.links.send_kv(instance.pool, self.last_pool, num_bytes, arrived)
            return False
        time_s = instance.engine.kv_bytes_per_token * one.held / world.transfer_bytes_per_s
        start_s = max(now, instance.sender_free_s) if world.transfers_contend else now
        instance.sender_free_s = start_s + time_s
        event = self.clock.at(start_s + time_s + world.transfer_latency_s, SENT + one.number)
        event.callbacks.append(lambda _: self._sent(instance, one))
        return False

    def _sent(self, instance: FleetInstance, one: FleetRequest) -> None:
        instance.release(one)
        self.place(one, self.last_pool)

    def rows(self) -> tuple[FleetRow, ...]:
        """Courses of all requests."""
        return tuple(
            FleetRow(
                request=one.request,
                first_token_s=one.first_token_s,
                end_s=one.end_s,
                longest_gap_s=one.longest_gap_s,
                num_restarts=one.num_restarts,
                num_swaps=one.num_swaps,
                cached_tokens=one.cached_tokens,
                prompt_instance=one.prompt_instance,
                token_instance=one.token_instance,
            )
            for one in self.requests
        )
