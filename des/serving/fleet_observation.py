"""Observation of a fleet at a decision: pools now, and requests of the interval before it."""

from collections.abc import Mapping, Sequence

import numpy as np

from des.serving.fleet_instance import ACTIVE, DRAINING, STARTING, STOPPED, FleetInstance
from des.serving.fleet_requests import FleetRequest
from des.serving.fleet_world import PoolView, View, World
from des.serving.scaling_manager import ScalingManager


class Observer:
    """Makes views; ``done`` takes the requests that finish."""

    def __init__(
        self, world: World, manager: ScalingManager, requests: Sequence[FleetRequest]
    ) -> None:
        self.world, self.manager, self.requests = world, manager, requests
        self.done: list[FleetRequest] = []
        self.last_s = 0.0
        self.num_arrived = 0
        self.open: list[FleetRequest] = []
        self.busy_s: dict[int, float] = {}
        self.gaps = (0, 0.0)

    def pool_instances(self) -> dict[str, list[FleetInstance]]:
        """Instances that are not stopped, by the pool that they are in or join."""
        found: dict[str, list[FleetInstance]] = {pool: [] for pool in self.world.initial}
        for one in self.manager.instances:
            if one.state != STOPPED:
                found[one.next_pool or one.pool].append(one)
        return found

    def view(self, now_s: float, held: Mapping[str, int]) -> View:
        """See the fleet now; what was counted since the last view begins again."""
        first = self.num_arrived
        while (
            self.num_arrived < len(self.requests)
            and self.requests[self.num_arrived].request.arrival_s <= now_s
        ):
            self.num_arrived += 1
        new = self.requests[first : self.num_arrived]
        done, self.done = self.done, []
        self.open += new
        ttfts = [
            one.first_token_s - one.request.arrival_s
            for one in self.open
            if one.first_token_s is not None
        ]
        self.open = [one for one in self.open if one.first_token_s is None]
        interval_s = now_s - self.last_s
        pools = {
            pool: self._pool(members, interval_s, now_s, held[pool])
            for pool, members in self.pool_instances().items()
        }
        self.last_s = now_s
        return View(
            now_s=now_s,
            interval_s=interval_s,
            pools=pools,
            arrivals=len(new),
            prompt_tokens=sum(one.request.prompt_tokens for one in new),
            finished=len(done),
            output_tokens=sum(one.request.output_tokens for one in done),
            ttft_s=sum(ttfts) / len(ttfts) if ttfts else None,
            ttft_p95_s=float(np.percentile(ttfts, 95)) if ttfts else None,
            gap_s=self._mean_gap_s(),
            attainment=self._attainment(done),
            slo=self.world.slo,
            engine=self.world.engine,
            limits=self.world.limits,
        )

    def _attainment(self, done: Sequence[FleetRequest]) -> float | None:
        if not done:
            return None
        slo = self.world.slo
        good = sum(
            one.first_token_s is not None
            and one.first_token_s - one.request.arrival_s <= slo.ttft_s
            and one.longest_gap_s <= slo.gap_s
            for one in done
        )
        return good / len(done)

    def _mean_gap_s(self) -> float | None:
        num = sum(one.num_gaps for one in self.manager.instances)
        total_s = sum(one.gap_sum_s for one in self.manager.instances)
        (num_before, before_s), self.gaps = self.gaps, (num, total_s)
        return (total_s - before_s) / (num - num_before) if num > num_before else None

    def _pool(
        self, members: Sequence[FleetInstance], interval_s: float, now_s: float, held: int
    ) -> PoolView:
        active = [one for one in members if one.state == ACTIVE]
        starting = [one for one in members if one.state == STARTING]
        busy_s = 0.0
        for one in active:
            until_s = one.busy_until_s(now_s)
            busy_s += until_s - self.busy_s.get(one.number, 0.0)
            self.busy_s[one.number] = until_s
        num = max(len(active), 1)
        capacity = self.world.engine.kv_capacity_tokens * num
        return PoolView(
            active=len(active),
            starting=len(starting),
            draining=sum(one.state == DRAINING for one in members),
            waiting=held + sum(len(one.waiting) for one in members),
            waiting_tokens=sum(one.due_tokens for one in members),
            running=sum(len(one.reading) + len(one.writing) for one in members),
            kv_fraction=sum(one.used for one in active) / capacity,
            busy_fraction=min(1.0, busy_s / (interval_s * num)),
            start_left_s=sum(one.ready_s - now_s for one in starting) / max(len(starting), 1),
        )
