"""Scaling of a fleet: servers given out, instances that start, drain, stop or change their pool."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import simpy

from des.base.checks import require_count
from des.clock import Clock
from des.serving.fleet_members import FleetMember
from des.serving.fleet_servers import STANDARD_SKU, FleetServer, Servers
from des.serving.fleet_settings import Engine, ScalingLimits, StartDelay
from des.serving.instance_life import (
    ACTIVE,
    CHECK,
    DRAINING,
    READY,
    SLEEPING,
    STARTING,
    STOPPED,
    WARM,
)

MakeInstance = Callable[[Engine, str, int, float, float], FleetMember]
"""Make an instance of an engine, in a pool, with a number, ordered at and ready at those times."""


@dataclass(slots=True, eq=False, kw_only=True)
class ScalingManager:
    """Gives out servers, starts and drains instances, and knows the state of each.

    ``placed_again`` takes requests that a draining instance gives up; ``is_active`` is called when
    an instance becomes active.
    """

    clock: Clock
    make_instance: MakeInstance
    placed_again: Callable[[Iterable[Any]], None]
    is_active: Callable[[FleetMember], None]
    start: StartDelay
    limits: ScalingLimits
    seed: int = 0
    servers: Servers = field(default_factory=Servers)
    load_weights: Callable[[str, Callable[[], None]], None] | None = None
    """Sends the weights to a pool in place of the time to load them (None: a start takes it)."""
    instances: list[FleetMember] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    server_of: dict[int, int] = field(default_factory=dict)
    """Number of the server of each instance, also of one that has stopped."""

    def scale_up_full(
        self,
        instance_cfg: Engine,
        parallelism: int,
        tag: str,
        server_sku: str | None = None,
        *,
        at_once: bool = False,
    ) -> tuple[FleetServer, FleetMember]:
        """Wake a spare instance, or order one: a server, then provision, load and warm-up.

        Parameters
        ----------
        parallelism
            GPUs of the instance; those of its configuration.
        tag
            Pool that it joins.
        server_sku
            Kind of server (default: the standard one).
        at_once
            Whether it is active now, as at the start of a run.

        Raises
        ------
        ValueError
            If the parallelism is not that of the configuration, no server is large enough, or
            there are `max_total` instances; a `NoRoomError` if no server has room.
        """
        require_count("scale up", "parallelism", parallelism)
        if parallelism != instance_cfg.num_gpus:
            raise ValueError(
                f"scale up {tag}: parallelism must be the {instance_cfg.num_gpus} GPUs of the "
                f"instance configuration, got {parallelism}"
            )
        now = self.clock.now
        spare = self._spare()
        if spare is not None and not at_once:
            return self._wake(spare, tag)
        if self.get_status_summary()["total_instances"] >= self.limits.max_total:
            raise ValueError(
                f"scale up {tag}: instances must be at most max_total ({self.limits.max_total})"
            )
        number = len(self.instances)
        server = self.servers.take(server_sku or STANDARD_SKU, parallelism)
        ready_s = now if at_once else now + self.start.drawn_s(self.seed, number)
        instance = self.make_instance(instance_cfg, tag, number, now, ready_s)
        self.instances.append(instance)
        server.instances.append(instance)
        self.server_of[number] = server.number
        if at_once:
            self._become_active(instance)
        else:
            self.say(f"[ScalingManager] Full scale-up: server {server.number} + instance {number}")
            self._begin_start(instance)
        return server, instance

    def _spare(self) -> FleetMember | None:
        """Instance that serves soonest of the warm and the sleeping ones."""
        for state in (WARM, SLEEPING):
            for one in self.instances:
                if one.state == state:
                    return one
        return None

    def _wake(self, instance: FleetMember, tag: str) -> tuple[FleetServer, FleetMember]:
        now, is_warm = self.clock.now, instance.state == WARM
        self.say(f"wake: {tag} instance {instance.number} from {instance.state}")
        instance.pool, instance.drained_from_s = tag, None
        instance.ready_s = now if is_warm else now + self.start.wake_s
        if is_warm:
            self._become_active(instance)
        else:
            instance.life.enter(STARTING, now)
            self._ready_at(instance, instance.ready_s)
        return self.servers.of(instance), instance

    def _begin_start(self, instance: FleetMember) -> None:
        if self.load_weights is None:
            self._ready_at(instance, instance.ready_s)
            return
        warm_up_s, ordered_s = self.start.warm_up_s, instance.ready_s

        def loaded() -> None:
            if instance.state == STARTING and instance.ready_s == ordered_s:
                instance.ready_s = self.clock.now + warm_up_s
                self._ready_at(instance, instance.ready_s)

        def provisioned(_: simpy.Event) -> None:
            if instance.state == STARTING and self.load_weights is not None:
                self.load_weights(instance.pool, loaded)

        at_s = self.clock.now + self.start.provision_s
        self.clock.at(at_s, READY + instance.number).callbacks.append(provisioned)

    def _ready_at(self, instance: FleetMember, ready_s: float) -> None:
        """Let it become active then, if it is not cancelled or ordered again before."""

        def ready(_: simpy.Event) -> None:
            if instance.state == STARTING and instance.ready_s == ready_s:
                self._become_active(instance)

        self.clock.at(ready_s, READY + instance.number).callbacks.append(ready)

    def refuse(self, tag: str, num: int) -> None:
        """Log instances that no server has room for."""
        self.say(f"scale_up refused: {num} of {tag}, no server has room")

    def scale_down_full(self, instance: FleetMember, to_pool: str | None = None) -> None:
        """Cancel a starting instance, or drain an active one; it stops or joins another pool.

        Raises
        ------
        ValueError
            If it is draining or stopped already.
        """
        if instance.state == STARTING:
            self.say(f"scale_up cancelled: instance {instance.number}")
            if instance.active_s is None:
                self._stop(instance)
            else:
                self._retire(instance)
            return
        if instance.state != ACTIVE:
            raise ValueError(
                f"scale down: instance {instance.number} must be starting or active, "
                f"got {instance.state}"
            )
        instance.life.enter(DRAINING, self.clock.now)
        instance.next_pool = to_pool
        instance.drained_from_s = self.clock.now
        self.say(
            f"[ScalingManager] Instance {instance.number} draining started at {self.clock.now:.2f}"
        )
        self.placed_again(instance.give_waiting())
        if self.limits.drain_moves_out:
            instance.move_out()
        if self.limits.drain_timeout_s:
            event = self.clock.at(
                self.clock.now + self.limits.drain_timeout_s, CHECK + instance.number
            )
            drained_from_s = instance.drained_from_s
            event.callbacks.append(lambda _: self._time_out(instance, drained_from_s))
        self.drained(instance)

    def keep(self, instance: FleetMember) -> None:
        """Let a draining instance serve again, as load has returned.

        Raises
        ------
        ValueError
            If it does not drain.
        """
        if instance.state != DRAINING:
            raise ValueError(
                f"keep: instance {instance.number} must be draining, got {instance.state}"
            )
        instance.drained_from_s = instance.next_pool = None
        self.say(f"drain cancelled: instance {instance.number}")
        self._become_active(instance)

    def release(self, instance: FleetMember) -> None:
        """Stop an instance at once, whatever its state."""
        if instance.state != STOPPED:
            self._stop(instance)

    def drained(self, instance: FleetMember) -> None:
        """Stop a draining instance with nothing left, at once or when it is looked at next."""
        if instance.state != DRAINING or instance.present or instance.leaving:
            return
        interval_s = self.limits.drain_check_s
        assert instance.drained_from_s is not None
        if not interval_s:
            return self._end_drain(instance)
        since_s = self.clock.now - instance.drained_from_s
        check_s = instance.drained_from_s + (since_s // interval_s + 1) * interval_s
        drained_from_s = instance.drained_from_s

        def look(_: simpy.Event) -> None:
            same = instance.state == DRAINING and instance.drained_from_s == drained_from_s
            if same and not instance.present and not instance.leaving:
                self._end_drain(instance)

        self.clock.at(check_s, CHECK + instance.number).callbacks.append(look)

    def get_active_instances(self, instances: Iterable[FleetMember]) -> list[FleetMember]:
        """Instances, of those given, that take requests."""
        return [one for one in instances if one.state == ACTIVE]

    def get_status_summary(self) -> dict[str, int]:
        """Numbers of instances by state, of servers and of all instances that are not stopped."""
        states = [one.state for one in self.instances]
        return {
            "active_instances": states.count(ACTIVE),
            "scaling_up_instances": states.count(STARTING),
            "draining_instances": states.count(DRAINING),
            "total_servers": self.servers.num_with(self.instances),
            "total_instances": len(states) - states.count(STOPPED),
        }

    def _become_active(self, instance: FleetMember) -> None:
        number, now = instance.number, self.clock.now
        instance.life.enter(ACTIVE, now)
        instance.stay()
        if instance.active_s is None:
            instance.active_s = now
            self.say(f"[ScalingManager] Instance {number} scaled up at {now:.2f}")
        else:
            self.say(f"active: {instance.pool} instance {number}")
        self.is_active(instance)

    def _time_out(self, instance: FleetMember, drained_from_s: float) -> None:
        if instance.state == DRAINING and instance.drained_from_s == drained_from_s:
            self.say(f"drain timed out: instance {instance.number}")
            self.placed_again(instance.give_up())
            self.drained(instance)

    def _end_drain(self, instance: FleetMember) -> None:
        if instance.next_pool is None:
            self._retire(instance)
            return
        instance.pool, instance.next_pool = instance.next_pool, None
        instance.drained_from_s = None
        self._become_active(instance)

    def _retire(self, instance: FleetMember) -> None:
        """Keep it as a spare, as long as there are too few, or stop it."""
        states = [one.state for one in self.instances]
        for state, most in ((WARM, self.start.num_warm), (SLEEPING, self.start.num_sleeping)):
            if states.count(state) < most:
                instance.life.enter(state, self.clock.now)
                self.say(f"{state}: instance {instance.number}")
                if state == SLEEPING:
                    instance.forget_prefixes()
                return
        self._stop(instance)

    def _stop(self, instance: FleetMember) -> None:
        instance.life.enter(STOPPED, self.clock.now)
        instance.stopped_s = self.clock.now
        left = self.servers.give_back(instance)
        self.say(f"stopped: {instance.pool} instance {instance.number}")
        for number in left:
            self.say(f"[ScalingManager] Auto scale-down server {number} after instance removal")

    def say(self, text: str) -> None:
        """Log a line at this time."""
        self.log.append(f"{self.clock.now:.3f} {text}")
