"""Scaling of a fleet: servers given out, instances that start, drain, stop or change their pool."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import simpy

from des.base.checks import require_count
from des.clock import Clock
from des.serving.fleet_instance import (
    ACTIVE,
    CHECK,
    DRAINING,
    READY,
    STARTING,
    STOPPED,
    FleetInstance,
)
from des.serving.fleet_requests import FleetRequest
from des.serving.fleet_world import Engine, ScalingLimits, StartDelay

STANDARD_SKU = "standard"


@dataclass(slots=True, eq=False)
class FleetServer:
    """One server, and the instances packed on it."""

    number: int
    sku: str
    num_gpus: int
    instances: list[FleetInstance] = field(default_factory=list)

    @property
    def free_gpus(self) -> int:
        """GPUs that no instance has."""
        return self.num_gpus - sum(one.engine.num_gpus for one in self.instances)


MakeInstance = Callable[[Engine, str, int, float, float], FleetInstance]
"""Make an instance of an engine, in a pool, with a number, ordered at and ready at those times."""


@dataclass(slots=True, eq=False, kw_only=True)
class ScalingManager:
    """Gives out servers, starts and drains instances, and knows the state of each.

    ``placed_again`` takes requests that a draining instance gives up; ``is_active`` is called when
    an instance becomes active.
    """

    clock: Clock
    make_instance: MakeInstance
    placed_again: Callable[[Iterable[FleetRequest]], None]
    is_active: Callable[[FleetInstance], None]
    start: StartDelay
    limits: ScalingLimits
    seed: int = 0
    server_gpus: Mapping[str, int] = field(default_factory=lambda: {STANDARD_SKU: 8})
    """GPUs of a server of each kind."""
    instances: list[FleetInstance] = field(default_factory=list)
    servers: list[FleetServer] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    _num_servers: int = 0

    def scale_up_full(
        self,
        instance_cfg: Engine,
        parallelism: int,
        tag: str,
        server_sku: str | None = None,
        *,
        at_once: bool = False,
    ) -> tuple[FleetServer, FleetInstance]:
        """Order an instance: a place on a server, then provision, load and warm-up.

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
            If the parallelism is not that of the configuration, no server is large enough, or the
            limit of instances is reached.
        """
        require_count("scale up", "parallelism", parallelism)
        if parallelism != instance_cfg.num_gpus:
            raise ValueError(
                f"scale up {tag}: parallelism must be the {instance_cfg.num_gpus} GPUs of the "
                f"instance configuration, got {parallelism}"
            )
        if self.get_status_summary()["total_instances"] >= self.limits.max_total:
            raise ValueError(
                f"scale up {tag}: instances must be at most max_total ({self.limits.max_total})"
            )
        now = self.clock.now
        number = len(self.instances)
        server = self._server_for(server_sku or STANDARD_SKU, parallelism)
        ready_s = now if at_once else now + self._start_s(number)
        instance = self.make_instance(instance_cfg, tag, number, now, ready_s)
        self.instances.append(instance)
        server.instances.append(instance)
        if at_once:
            self._become_active(instance)
        else:
            self._say(f"scale_up: {tag} instance {number} on server {server.number}")
            event = self.clock.at(ready_s, READY + number)
            event.callbacks.append(lambda _: self._ready(instance))
        return server, instance

    def scale_down_full(self, instance: FleetInstance, to_pool: str | None = None) -> None:
        """Cancel a starting instance, or drain an active one; it stops or joins another pool.

        Raises
        ------
        ValueError
            If it is draining or stopped already.
        """
        if instance.state == STARTING:
            self._say(f"scale_up cancelled: instance {instance.number}")
            self._stop(instance)
            return
        if instance.state != ACTIVE:
            raise ValueError(
                f"scale down: instance {instance.number} must be starting or active, "
                f"got {instance.state}"
            )
        instance.state, instance.next_pool = DRAINING, to_pool
        instance.drained_from_s = self.clock.now
        self._say(f"draining: {instance.pool} instance {instance.number}")
        self.placed_again(instance.give_waiting())
        if self.limits.drain_timeout_s:
            event = self.clock.at(
                self.clock.now + self.limits.drain_timeout_s, CHECK + instance.number
            )
            drained_from_s = instance.drained_from_s
            event.callbacks.append(lambda _: self._time_out(instance, drained_from_s))
        self.drained(instance)

    def keep(self, instance: FleetInstance) -> None:
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
        self._say(f"drain cancelled: instance {instance.number}")
        self._become_active(instance)

    def drained(self, instance: FleetInstance) -> None:
        """Stop a draining instance with nothing left, at once or when it is looked at next."""
        if instance.state != DRAINING or instance.present or instance.leaving:
            return
        interval_s = self.limits.drain_check_s
        assert instance.drained_from_s is not None
        if not interval_s:
            self._end_drain(instance)
            return
        since_s = self.clock.now - instance.drained_from_s
        check_s = instance.drained_from_s + (since_s // interval_s + 1) * interval_s
        drained_from_s = instance.drained_from_s

        def look(_: simpy.Event) -> None:
            same = instance.state == DRAINING and instance.drained_from_s == drained_from_s
            if same and not instance.present and not instance.leaving:
                self._end_drain(instance)

        self.clock.at(check_s, CHECK + instance.number).callbacks.append(look)

    def get_active_instances(self, instances: Iterable[FleetInstance]) -> list[FleetInstance]:
        """Instances, of those given, that take requests."""
        return [one for one in instances if one.state == ACTIVE]

    def get_status_summary(self) -> dict[str, int]:
        """Numbers of instances by state, of servers and of all instances that are not stopped."""
        states = [one.state for one in self.instances]
        return {
            "active_instances": states.count(ACTIVE),
            "scaling_up_instances": states.count(STARTING),
            "draining_instances": states.count(DRAINING),
            "total_servers": len(self.servers),
            "total_instances": len(states) - states.count(STOPPED),
        }

    def _server_for(self, sku: str, num_gpus: int) -> FleetServer:
        if num_gpus > self.server_gpus.get(sku, 0):
            raise ValueError(
                f"scale up: server_sku must have at least {num_gpus} GPUs, one of "
                f"{dict(self.server_gpus)}, got {sku!r}"
            )
        for server in self.servers:
            if server.sku == sku and server.free_gpus >= num_gpus:
                return server
        server = FleetServer(number=self._num_servers, sku=sku, num_gpus=self.server_gpus[sku])
        self._num_servers += 1
        self.servers.append(server)
        return server

    def _start_s(self, number: int) -> float:
        """Time of a start, drawn by the seed and the number of the instance."""
        mean_s, variation = self.start.mean_s, self.start.variation
        if not variation or not mean_s:
            return mean_s
        variance = np.log1p(variation**2)
        rng = np.random.default_rng([self.seed, number])
        return float(mean_s * rng.lognormal(-variance / 2, np.sqrt(variance)))

    def _ready(self, instance: FleetInstance) -> None:
        if instance.state == STARTING:
            self._become_active(instance)

    def _become_active(self, instance: FleetInstance) -> None:
        instance.state = ACTIVE
        if instance.active_s is None:
            instance.active_s = self.clock.now
        self._say(f"active: {instance.pool} instance {instance.number}")
        self.is_active(instance)

    def _time_out(self, instance: FleetInstance, drained_from_s: float) -> None:
        if instance.state == DRAINING and instance.drained_from_s == drained_from_s:
            self._say(f"drain timed out: instance {instance.number}")
            self.placed_again(instance.give_up())
            self.drained(instance)

    def _end_drain(self, instance: FleetInstance) -> None:
        if instance.next_pool is None:
            self._stop(instance)
            return
        instance.pool, instance.next_pool = instance.next_pool, None
        instance.drained_from_s = None
        self._become_active(instance)

    def _stop(self, instance: FleetInstance) -> None:
        instance.state = STOPPED
        instance.stopped_s = self.clock.now
        for server in self.servers:
            if instance in server.instances:
                server.instances.remove(instance)
        self.servers = [server for server in self.servers if server.instances]
        self._say(f"stopped: {instance.pool} instance {instance.number}")

    def _say(self, text: str) -> None:
        self.log.append(f"{self.clock.now:.3f} {text}")
