"""Scaling of a fleet by decisions, whichever engine simulates its requests."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable
from typing import Any

import simpy

from des.clock import Clock
from des.serving.fleet_members import FleetMember
from des.serving.fleet_observation import Observer, RequestLog
from des.serving.fleet_servers import STANDARD_SKU, FleetServer, NoRoomError, Servers
from des.serving.fleet_settings import Engine
from des.serving.fleet_world import (
    PROMPT,
    TOKEN,
    Decision,
    FleetRow,
    History,
    InstanceRow,
    ScalingPolicy,
    View,
    World,
)
from des.serving.gaps import NUM_BINS
from des.serving.instance_life import ACTIVE, DECIDE, DRAINING, SLEEPING, WARM
from des.serving.scaling_manager import ScalingManager
from des.serving.scaling_steps import blocked, bounded, require_decision, to_keep, to_remove


class ScaledFleet(ABC):
    """A fleet on its clock, which stops at each decision; others may share clock and servers."""

    def __init__(
        self, world: World, log: RequestLog, seed: int, clock: Clock, servers: Servers | None
    ) -> None:
        self.world, self.clock = world, clock
        self.held: dict[str, deque[Any]] = {pool: deque() for pool in world.initial}
        self.members: dict[str, list[Any]] = {pool: [] for pool in world.initial}
        self.manager = ScalingManager(
            clock=clock,
            make_instance=self.make_instance,
            placed_again=self.place_again,
            is_active=self._is_active,
            start=world.start,
            limits=world.limits,
            seed=seed,
            servers=servers
            or Servers(
                server_gpus={STANDARD_SKU: max(8, *(one.num_gpus for one in world.all_engines))},
                is_packed=world.limits.packs_servers,
            ),
        )
        self.first_pool, self.last_pool = next(iter(world.initial)), tuple(world.initial)[-1]
        self.decisions: list[tuple[View, Decision]] = []
        self.last_change: dict[str, tuple[float, int]] = {}
        self.num_flaps = 0
        self.num_changes = 0
        """Changes of the members of pools."""
        self.log = log
        self.observer = Observer(world, self.manager, log)
        for pool, num in world.initial.items():
            for _ in range(num):
                self._order(pool, at_once=True)

    @abstractmethod
    def make_instance(
        self, engine: Engine, pool: str, number: int, ordered_s: float, ready_s: float
    ) -> FleetMember:
        """Make an instance that starts."""

    @abstractmethod
    def place(self, one: Any, pool: str) -> None:
        """Let a request arrive at the instance that the router chooses, or hold it."""

    @abstractmethod
    def place_again(self, given: Iterable[Any]) -> None:
        """Place requests that an instance has given up."""

    @abstractmethod
    def advance(self, until: simpy.Event) -> None:
        """Simulate until an event of the clock."""

    @abstractmethod
    def rows(self) -> tuple[FleetRow, ...]:
        """Courses of all requests."""

    def is_over(self) -> bool:
        """Whether every request is finished, or the time is over."""
        horizon_s = self.world.horizon_s
        is_late = horizon_s is not None and self.clock.now >= horizon_s
        return is_late or self.log.num_done == len(self.world.requests)

    def next_view(self) -> View | None:
        """Simulate up to the next decision; None where all is finished before it."""
        next_s = self.clock.now + self.world.decision_interval_s
        if self.world.horizon_s is not None:
            next_s = min(next_s, self.world.horizon_s)
        self.advance(self.clock.at(next_s, DECIDE))
        return None if self.is_over() else self.view_now()

    def view_now(self) -> View:
        """See the fleet now."""
        return self.observer.view(self.clock.now, {p: len(q) for p, q in self.held.items()})

    def new_orders(self, decision: Decision) -> dict[str, int]:
        """Instances of each pool that a decision would newly order, before limits."""
        pools = self.observer.pool_instances()
        num_spare = sum(one.state in (WARM, SLEEPING) for one in self.manager.instances)
        found = {}
        for pool, instances in pools.items():
            ordered = sum(one.state != DRAINING for one in instances)
            growth = decision.counts.get(pool, ordered) - ordered
            growth -= len(to_keep(instances, growth)) if growth > 0 else 0
            woken = min(max(growth, 0), num_spare)
            num_spare -= woken
            found[pool] = max(growth, 0) - woken
        return found

    def give_up_all(self) -> None:
        """Give up all instances, as after the last request."""
        for one in self.manager.instances:
            self._leave(one)
            self.manager.release(one)

    def apply(self, view: View, decision: Decision) -> None:
        """Change the pools as decided, within the limits."""
        require_decision(decision, tuple(self.world.initial))
        self.decisions.append((view, decision))
        counts = self._migrated(decision)
        pools = self.observer.pool_instances()
        ordered = {
            pool: sum(one.state != DRAINING for one in pools[pool]) for pool in self.world.initial
        }
        num_draining = sum(map(len, pools.values())) - sum(ordered.values())
        wished, limits = counts, self.world.limits
        counts = bounded(wished, ordered, num_draining, limits)
        for line in blocked(wished, counts, ordered, limits):
            self.manager.say(f"[Action Blocked] {line}")
        for pool, wanted in counts.items():
            self._resize(pool, wanted - ordered[pool], pools[pool])

    def _resize(self, pool: str, change: int, instances: list[FleetMember]) -> None:
        now, limits = self.clock.now, self.world.limits
        last_s, last_sign = self.last_change.get(pool, (-float("inf"), 0))
        if change == 0 or (change < 0 and now - last_s < limits.cooldown_s):
            return
        sign = 1 if change > 0 else -1
        self.num_flaps += sign == -last_sign and now - last_s < limits.flap_window_s
        self.last_change[pool] = (now, sign)
        if change < 0:
            least = limits.min_per_pool
            for one in to_remove(instances, -change, self._mean_output(), num_kept=least):
                self._leave(one)
                self.manager.say(f"[Action] Removed {pool} instance {one.number}")
                self.manager.scale_down_full(one)
            return
        kept = to_keep(instances, change)
        for one in kept:
            self.manager.keep(one)
        for left in range(change - len(kept), 0, -1):
            try:
                server, one = self._order(pool)
            except NoRoomError:
                self.manager.refuse(pool, left)
                return
            self.manager.say(
                f"[Action] Added {pool} instance {one.number} on server {server.number}"
            )

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
        if self.world.limits.max_per_pool is not None:
            there = self.observer.pool_instances()[target]
            num_there = sum(one.state != DRAINING or one.next_pool is not None for one in there)
            most = min(most, max(0, self.world.limits.max_per_pool - num_there))
        leaving = to_remove(active, min(abs(num), most), self._mean_output())
        for one in leaving:
            self._leave(one)
            self.manager.scale_down_full(one, to_pool=target)
        if source in counts:
            counts[source] = max(counts[source] - len(leaving), 0)
        return counts

    def _mean_output(self) -> float | None:
        """Mean answer so far; None where drains are not chosen by it."""
        if not self.world.limits.drains_soonest:
            return None
        return self.log.output_sum / max(self.log.num_done, 1)

    def _order(self, pool: str, *, at_once: bool = False) -> tuple[FleetServer, FleetMember]:
        engine = self.world.engine_of(pool)
        return self.manager.scale_up_full(engine, engine.num_gpus, pool, at_once=at_once)

    def _is_active(self, instance: FleetMember) -> None:
        members = self.members[instance.pool]
        members.append(instance)
        members.sort(key=lambda each: each.number)
        self.num_changes += 1
        held, self.held[instance.pool] = self.held[instance.pool], deque()
        for one in held:
            self.place(one, instance.pool)

    def _leave(self, instance: FleetMember) -> None:
        if instance.state == ACTIVE:
            self.members[instance.pool].remove(instance)
            self.num_changes += 1

    def history(self) -> History:
        """Collect requests, instances and decisions."""
        now = self.clock.now
        counts = [0] * NUM_BINS
        for instance in self.manager.instances:
            for number, count in enumerate(instance.gap_counts):
                counts[number] += count
        return History(
            world=self.world,
            requests=self.rows(),
            instances=tuple(self._instance_row(one, now) for one in self.manager.instances),
            decisions=tuple(self.decisions),
            gap_counts=tuple(counts),
            num_flaps=self.num_flaps,
            log=tuple(self.manager.log),
            end_s=now,
        )

    def _instance_row(self, one: FleetMember, now: float) -> InstanceRow:
        return InstanceRow(
            number=one.number,
            pool=one.pool,
            server=self.manager.server_of[one.number],
            num_gpus=one.engine.num_gpus,
            ordered_s=one.ordered_s,
            active_s=one.active_s,
            drained_from_s=one.drained_from_s,
            stopped_s=one.stopped_s,
            busy_s=one.busy_until_s(now),
            spans=one.life.until(now),
        )


def run_policy(fleet: ScaledFleet, policy: ScalingPolicy) -> History:
    """Let a policy decide at each interval until every request is finished."""
    memory = policy.first_memory(fleet.world)
    while not fleet.is_over():
        view = fleet.next_view()
        if view is None:
            break
        decision, memory = policy.decide(view, memory)
        fleet.apply(view, decision)
    return fleet.history()
