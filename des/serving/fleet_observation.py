"""Observation of a fleet at a decision: pools now, and requests of the interval before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from des.serving.fleet_members import FleetMember
from des.serving.fleet_requests import FleetRequest
from des.serving.fleet_settings import Slo
from des.serving.fleet_world import PoolView, View, World
from des.serving.instance_life import ACTIVE, DRAINING, STARTING
from des.serving.scaling_manager import ScalingManager


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Requests since the last decision."""

    arrivals: int
    prompt_tokens: int
    finished: int
    output_tokens: int
    num_good: int
    """Finished ones within the SLO."""
    ttfts: Sequence[float]
    """Times to the first token of those that got it, in order of arrival. [s]"""


class RequestLog(Protocol):
    """Requests in the course of a run."""

    @property
    def num_done(self) -> int:
        """Requests that are finished."""
        ...

    @property
    def output_sum(self) -> int:
        """Tokens that they have written."""
        ...

    def since(self, now_s: float) -> Interval:
        """Count what has happened since the last call."""
        ...


class CourseLog:
    """Log of requests that tell when they finish."""

    def __init__(self, requests: Sequence[FleetRequest], slo: Slo) -> None:
        self.requests, self.slo = requests, slo
        self.num_done = self.output_sum = 0
        self._done: list[FleetRequest] = []
        self._num_arrived = 0
        self._open: list[FleetRequest] = []

    def is_done(self, one: FleetRequest) -> None:
        """Take note of a finished request."""
        self.num_done += 1
        self.output_sum += one.request.output_tokens
        self._done.append(one)

    def since(self, now_s: float) -> Interval:
        """Count what has happened since the last call."""
        first, requests = self._num_arrived, self.requests
        while (
            self._num_arrived < len(requests)
            and requests[self._num_arrived].request.arrival_s <= now_s
        ):
            self._num_arrived += 1
        new = requests[first : self._num_arrived]
        done, self._done = self._done, []
        self._open += new
        ttfts = [
            one.first_token_s - one.request.arrival_s
            for one in self._open
            if one.first_token_s is not None
        ]
        self._open = [one for one in self._open if one.first_token_s is None]
        return Interval(
            arrivals=len(new),
            prompt_tokens=sum(one.request.prompt_tokens for one in new),
            finished=len(done),
            output_tokens=sum(one.request.output_tokens for one in done),
            num_good=sum(self._is_good(one) for one in done),
            ttfts=ttfts,
        )

    def _is_good(self, one: FleetRequest) -> bool:
        assert one.first_token_s is not None
        ttft_s = one.first_token_s - one.request.arrival_s
        return ttft_s <= self.slo.ttft_s and one.longest_gap_s <= self.slo.gap_s


class Observer:
    """Makes views of a fleet."""

    def __init__(self, world: World, manager: ScalingManager, log: RequestLog) -> None:
        self.world, self.manager, self.log = world, manager, log
        self.last_s = 0.0
        self.busy_s: dict[int, float] = {}
        self.gaps = (0, 0.0)

    def pool_instances(self) -> dict[str, list[FleetMember]]:
        """Instances that serve, start or drain, by the pool that they are in or join."""
        found: dict[str, list[FleetMember]] = {pool: [] for pool in self.world.initial}
        for one in self.manager.instances:
            if one.state in (ACTIVE, STARTING, DRAINING):
                found[one.next_pool or one.pool].append(one)
        return found

    def view(self, now_s: float, held: Mapping[str, int]) -> View:
        """See the fleet now; what was counted since the last view begins again."""
        seen = self.log.since(now_s)
        ttfts = seen.ttfts
        interval_s = now_s - self.last_s
        pools = {
            pool: self._pool(pool, members, interval_s, now_s, held[pool])
            for pool, members in self.pool_instances().items()
        }
        self.last_s = now_s
        return View(
            now_s=now_s,
            interval_s=interval_s,
            pools=pools,
            arrivals=seen.arrivals,
            prompt_tokens=seen.prompt_tokens,
            finished=seen.finished,
            output_tokens=seen.output_tokens,
            ttft_s=sum(ttfts) / len(ttfts) if ttfts else None,
            ttft_p95_s=float(np.percentile(ttfts, 95)) if ttfts else None,
            gap_s=self._mean_gap_s(),
            attainment=seen.num_good / seen.finished if seen.finished else None,
            slo=self.world.slo,
            engine=self.world.engine,
            limits=self.world.limits,
            engines=self.world.engines,
        )

    def _mean_gap_s(self) -> float | None:
        num = sum(one.num_gaps for one in self.manager.instances)
        total_s = sum(one.gap_sum_s for one in self.manager.instances)
        (num_before, before_s), self.gaps = self.gaps, (num, total_s)
        return (total_s - before_s) / (num - num_before) if num > num_before else None

    def _pool(
        self, pool: str, members: Sequence[FleetMember], interval_s: float, now_s: float, held: int
    ) -> PoolView:
        active = [one for one in members if one.state == ACTIVE]
        starting = [one for one in members if one.state == STARTING]
        left_s = [max(one.ready_s - now_s, 0.0) for one in starting]
        busy_s = 0.0
        for one in active:
            until_s = one.busy_until_s(now_s)
            busy_s += until_s - self.busy_s.get(one.number, 0.0)
            self.busy_s[one.number] = until_s
        num = max(len(active), 1)
        capacity = sum(one.engine.kv_capacity_tokens for one in active)
        capacity = capacity or self.world.engine_of(pool).kv_capacity_tokens
        return PoolView(
            active=len(active),
            starting=len(starting),
            draining=sum(one.state == DRAINING for one in members),
            waiting=held + sum(one.num_waiting for one in active),
            waiting_tokens=sum(one.due_tokens for one in active),
            running=sum(one.present - one.num_waiting for one in active),
            kv_fraction=sum(one.used for one in active) / capacity,
            busy_fraction=min(1.0, busy_s / (interval_s * num)),
            start_left_s=sum(left_s) / max(len(starting), 1),
        )
