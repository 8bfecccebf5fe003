"""Simulation of a fleet: requests are placed, read, sent and written while a policy sizes pools."""

from collections import deque
from collections.abc import Iterable

import simpy

from des.clock import Clock
from des.serving.fleet_instance import ACTIVE, ARRIVAL, DECIDE, SENT, STOPPED, FleetInstance
from des.serving.fleet_observation import Observer
from des.serving.fleet_requests import FleetRequest
from des.serving.fleet_world import (
    PROMPT,
    TOKEN,
    Decision,
    Engine,
    FleetRow,
    History,
    InstanceRow,
    ScalingPolicy,
    View,
    World,
    require_run_seed,
)
from des.serving.gaps import NUM_BINS
from des.serving.scaling_manager import STANDARD_SKU, ScalingManager
from des.serving.scaling_steps import bounded, require_decision, to_keep, to_remove


def run(world: World, policy: ScalingPolicy, seed: int = 0) -> History:
    """Simulate until every request is finished, deciding at each interval.

    Raises
    ------
    ValueError
        If the policy decides about a pool that there is not.
    """
    require_run_seed(seed)
    fleet = Fleet(world, seed)
    memory = policy.first_memory(world)
    while not fleet.is_over():
        view = fleet.next_view()
        if view is None:
            break
        decision, memory = policy.decide(view, memory)
        fleet.apply(view, decision)
    return fleet.history()


class Fleet:
    """A fleet on its clock, which stops at each decision."""

    def __init__(self, world: World, seed: int = 0) -> None:
        self.world = world
        self.clock = Clock()
        self.requests = [
            FleetRequest(each, number, each.prompt_tokens, each.prompt_tokens)
            for number, each in enumerate(world.requests)
        ]
        self.num_done = 0
        self.held: dict[str, deque[FleetRequest]] = {pool: deque() for pool in world.initial}
        self.members: dict[str, list[FleetInstance]] = {pool: [] for pool in world.initial}
        self.manager = ScalingManager(
            clock=self.clock,
            make_instance=self._make_instance,
            placed_again=self._place_again,
            is_active=self._is_active,
            start=world.start,
            limits=world.limits,
            seed=seed,
            server_gpus={STANDARD_SKU: max(8, world.engine.num_gpus)},
        )
        self.first_pool, self.last_pool = next(iter(world.initial)), tuple(world.initial)[-1]
        self.decisions: list[tuple[View, Decision]] = []
        self.last_change: dict[str, tuple[float, int]] = {}
        self.num_flaps = 0
        for pool, num in world.initial.items():
            for _ in range(num):
                self._order(pool, at_once=True)
        self.observer = Observer(world, self.manager, self.requests)
        self.clock.process(self._arrivals())

    def is_over(self) -> bool:
        """Whether every request is finished, or the time is over."""
        horizon_s = self.world.horizon_s
        is_late = horizon_s is not None and self.clock.now >= horizon_s
        return is_late or self.num_done == len(self.requests)

    def next_view(self) -> View | None:
        """Simulate up to the next decision; None where all is finished before it."""
        next_s = self.clock.now + self.world.decision_interval_s
        if self.world.horizon_s is not None:
            next_s = min(next_s, self.world.horizon_s)
        self.clock.run(until=self.clock.at(next_s, DECIDE))
        if self.is_over():
            return None
        return self.observer.view(self.clock.now, {p: len(q) for p, q in self.held.items()})

    def apply(self, view: View, decision: Decision) -> None:
        """Change the pools as decided, within the limits."""
        require_decision(decision, tuple(self.world.initial))
        self.decisions.append((view, decision))
        counts = self._migrated(decision)
        pools = self.observer.pool_instances()
        ordered = {
            pool: sum(one.state != "draining" for one in pools[pool]) for pool in self.world.initial
        }
        num_draining = sum(map(len, pools.values())) - sum(ordered.values())
        counts = bounded(counts, ordered, num_draining, self.world.limits)
        for pool, wanted in counts.items():
            self._resize(pool, wanted - ordered[pool], pools[pool])

    def _resize(self, pool: str, change: int, instances: list[FleetInstance]) -> None:
        now, limits = self.clock.now, self.world.limits
        last_s, last_sign = self.last_change.get(pool, (-float("inf"), 0))
        if change == 0 or (change < 0 and now - last_s < limits.cooldown_s):
            return
        sign = 1 if change > 0 else -1
        self.num_flaps += sign == -last_sign and now - last_s < limits.flap_window_s
        self.last_change[pool] = (now, sign)
        if change < 0:
            for one in to_remove(instances, -change):
                self._leave(one)
                self.manager.scale_down_full(one)
            return
        kept = to_keep(instances, change)
        for one in kept:
            self.manager.keep(one)
        for _ in range(change - len(kept)):
            self._order(pool)

    def _migrated(self, decision: Decision) -> dict[str, int]:
        """Let instances change from prompt to token, or back; each pool keeps its least.

        Returns the counts that are left to reach.
        """
        counts, num = dict(decision.counts), decision.migrate
        if not num or PROMPT not in self.members:
            return counts
        source, target = (PROMPT, TOKEN) if num > 0 else (TOKEN, PROMPT)
        active = self.members[source]
        most = max(0, len(active) - self.world.limits.min_per_pool)
        leaving = to_remove(active, min(abs(num), most))
        for one in leaving:
            self._leave(one)
            self.manager.scale_down_full(one, to_pool=target)
        if source in counts:
            counts[source] = max(counts[source] - len(leaving), 0)
        return counts

    def _order(self, pool: str, *, at_once: bool = False) -> None:
        engine = self.world.engine
        self.manager.scale_up_full(engine, engine.num_gpus, pool, at_once=at_once)

    def _make_instance(
        self, engine: Engine, pool: str, number: int, ordered_s: float, ready_s: float
    ) -> FleetInstance:
        return FleetInstance(
            number=number,
            pool=pool,
            clock=self.clock,
            engine=engine,
            ordered_s=ordered_s,
            ready_s=ready_s,
            is_read=self._is_read,
            is_done=self._is_done,
            is_empty=self.manager.drained,
        )

    def _arrivals(self) -> simpy.events.ProcessGenerator:
        for one in self.requests:
            yield self.clock.at(one.request.arrival_s, ARRIVAL)
            self._place(one, self.first_pool)

    def _place(self, one: FleetRequest, pool: str) -> None:
        """Let a request arrive at the instance with the least to read, or with the fewest."""
        active = self.members[pool]
        if not active:
            self.held[pool].append(one)
        elif pool == PROMPT:
            min(active, key=lambda each: (each.due_tokens, each.number)).arrive(one)
        else:
            min(active, key=lambda each: (each.present, each.number)).arrive(one)

    def _place_again(self, given: Iterable[FleetRequest]) -> None:
        for one in given:
            self._place(one, self.first_pool if one.to_read else self.last_pool)

    def _is_active(self, instance: FleetInstance) -> None:
        members = self.members[instance.pool]
        members.append(instance)
        members.sort(key=lambda each: each.number)
        held, self.held[instance.pool] = self.held[instance.pool], deque()
        for one in held:
            self._place(one, instance.pool)

    def _leave(self, instance: FleetInstance) -> None:
        if instance.state == ACTIVE:
            self.members[instance.pool].remove(instance)

    def _is_done(self, one: FleetRequest) -> None:
        self.num_done += 1
        self.observer.done.append(one)

    def _is_read(self, instance: FleetInstance, one: FleetRequest) -> bool:
        """Keep a request in a mixed pool; send its KV memory on from a prompt pool."""
        if instance.pool != PROMPT:
            return True
        now, world = self.clock.now, self.world
        time_s = world.engine.kv_bytes_per_token * one.held / world.transfer_bytes_per_s
        start_s = max(now, instance.sender_free_s) if world.transfers_contend else now
        instance.sender_free_s = start_s + time_s
        one.last_token_s = now
        instance.leaving += one.held
        event = self.clock.at(start_s + time_s + world.transfer_latency_s, SENT + one.number)
        event.callbacks.append(lambda _: self._sent(instance, one))
        return False

    def _sent(self, instance: FleetInstance, one: FleetRequest) -> None:
        instance.release(one)
        self._place(one, TOKEN)

    def history(self) -> History:
        """Collect requests, instances and decisions."""
        now = self.clock.now
        counts = [0] * NUM_BINS
        for instance in self.manager.instances:
            for number, count in enumerate(instance.gap_counts):
                counts[number] += count
        return History(
            world=self.world,
            requests=tuple(
                FleetRow(
                    request=one.request,
                    first_token_s=one.first_token_s,
                    end_s=one.end_s,
                    longest_gap_s=one.longest_gap_s,
                    num_restarts=one.num_restarts,
                    prompt_instance=one.prompt_instance,
                    token_instance=one.token_instance,
                )
                for one in self.requests
            ),
            instances=tuple(self._instance_row(one, now) for one in self.manager.instances),
            decisions=tuple(self.decisions),
            gap_counts=tuple(counts),
            num_flaps=self.num_flaps,
            log=tuple(self.manager.log),
            end_s=now,
        )

    def _instance_row(self, one: FleetInstance, now: float) -> InstanceRow:
        return InstanceRow(
            number=one.number,
            pool=one.pool,
            ordered_s=one.ordered_s,
            active_s=one.active_s,
            drained_from_s=one.drained_from_s,
            stopped_s=one.stopped_s,
            busy_s=one.busy_until_s(now) if one.state != STOPPED else one.busy_s,
        )
