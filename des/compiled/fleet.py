"""Fleets in compiled code, with the floats of `des.serving.fleet_engine`.

Between two changes of the fleet, kernels simulate its requests; starts, drains and decisions are
the same code as in the SimPy engine.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from des.clock import Clock, Event
from des.compiled import fleet_arrays
from des.compiled.fleet_instances import ArrayInstance
from des.compiled.kernels.fleet_batches import NONE, Progress, RequestArrays
from des.compiled.kernels.fleet_loop import IS_EMPTY, IS_HELD, place_now, run_until
from des.serving.fleet_observation import Interval
from des.serving.fleet_scaling import ScaledFleet, run_policy
from des.serving.fleet_settings import Engine, Slo
from des.serving.fleet_world import (
    PROMPT,
    FleetRow,
    History,
    ScalingPolicy,
    World,
    require_run_seed,
)
from des.serving.instance_life import STOPPED


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FleetTimes:
    """Requests (N,) of a run, in order of arrival. [s]"""

    arrival_s: npt.NDArray[np.float64]
    first_token_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    longest_gap_s: npt.NDArray[np.float64]
    num_restarts: npt.NDArray[np.int64]

    def attainment(self, slo: Slo) -> float:
        """Share of requests within the SLO."""
        in_time = self.first_token_s - self.arrival_s <= slo.ttft_s
        good = in_time & (self.longest_gap_s <= slo.gap_s)
        return float(good.mean())


def run_compiled(world: World, policy: ScalingPolicy, seed: int = 0) -> History:
    """Do what `des.serving.fleet_engine.run` does, in compiled code.

    Raises
    ------
    ValueError
        If the world has rules that only the SimPy engine has, or the policy decides about a pool
        that there is not.
    """
    require_run_seed(seed)
    return run_policy(CompiledFleet(world, seed), policy)


def simulate_fixed(world: World) -> FleetTimes:
    """Simulate the initial instances, without changes, until every request is finished.

    Raises
    ------
    ValueError
        If the world ends at a time, or has rules that only the SimPy engine has.
    """
    if world.horizon_s is not None:
        raise ValueError(f"fixed fleet: horizon_s must be None, got {world.horizon_s}")
    fleet = CompiledFleet(world)
    fleet.simulate_before(math.inf, 0)
    r = fleet.requests
    return FleetTimes(
        arrival_s=r.arrival_s,
        first_token_s=r.first_token_s,
        end_s=r.end_s,
        longest_gap_s=r.longest_gap_s,
        num_restarts=r.restarts,
    )


def require_compiled(world: World) -> None:
    """Refuse rules that only the SimPy engine has.

    Raises
    ------
    ValueError
        Naming the rule.
    """
    for name, value, allowed in _rules(world):
        if value != allowed:
            raise ValueError(f"compiled fleet: {name} must be {allowed!r}, got {value!r}")


def is_compiled(world: World) -> bool:
    """Whether compiled code knows all rules of a world."""
    return all(value == allowed for _, value, allowed in _rules(world))


def _rules(world: World) -> tuple[tuple[str, object, object], ...]:
    """Rules that compiled code knows one value of: names, values, and that value."""
    return (
        ("router", world.router, "least_work"),
        ("prefix_block_tokens", world.engine.prefix_block_tokens, 0),
        ("sites", world.sites, None),
        ("engines", world.engines, {}),
        ("swap_bytes_per_s", world.engine.swap_bytes_per_s, 0),
        ("drain_moves_out", world.limits.drain_moves_out, False),
    )


class ArrayLog:
    """Log of requests in arrays."""

    def __init__(self, requests: RequestArrays, progress: Progress) -> None:
        self._requests, self._progress = requests, progress
        self._before = (0, 0, 0)
        self._num_arrived = 0
        self._open = np.zeros(0, np.int64)

    @property
    def num_done(self) -> int:
        """Requests that are finished."""
        return int(self._progress.counts[0])

    @property
    def output_sum(self) -> int:
        """Tokens that they have written."""
        return int(self._progress.counts[1])

    def since(self, now_s: float) -> Interval:
        """Count what has happened since the last call."""
        r, first = self._requests, self._num_arrived
        self._num_arrived = int(np.searchsorted(r.arrival_s, now_s, "right"))
        seen = np.concatenate([self._open, np.arange(first, self._num_arrived)])
        is_open = np.isnan(r.first_token_s[seen])
        got, self._open = seen[~is_open], seen[is_open]
        finished, output_tokens, num_good = (int(each) for each in self._progress.counts)
        before, self._before = self._before, (finished, output_tokens, num_good)
        return Interval(
            arrivals=self._num_arrived - first,
            prompt_tokens=int(r.prompt[first : self._num_arrived].sum()),
            finished=finished - before[0],
            output_tokens=output_tokens - before[1],
            num_good=num_good - before[2],
            ttfts=(r.first_token_s[got] - r.arrival_s[got]).tolist(),
        )


class CompiledFleet(ScaledFleet):
    """A fleet whose instances are simulated by kernels between the events of its clock."""

    def __init__(self, world: World, seed: int = 0) -> None:
        require_compiled(world)
        self.requests = fleet_arrays.request_arrays(world)
        self._numbers = fleet_arrays.engine_numbers(world.engine)
        self._instances = fleet_arrays.instance_arrays(world)
        self._fleet = fleet_arrays.fleet_arrays(world)
        self._transfers = fleet_arrays.transfer_numbers(world)
        self._progress = fleet_arrays.progress_numbers(world)
        self._pools = tuple(world.initial)
        self._free = list(range(world.limits.max_total))[::-1]
        self._known_changes = -1
        log = ArrayLog(self.requests, self._progress)
        super().__init__(world, log, seed, Clock(), None)

    def make_instance(
        self, engine: Engine, pool: str, number: int, ordered_s: float, ready_s: float
    ) -> ArrayInstance:
        """Make an instance that starts, at a free place."""
        if not self._free:
            self._free = [
                one.leave_place()
                for one in self._members()
                if one.state == STOPPED and one.has_place
            ]
        place = self._free.pop()
        self._instances.number[place] = number
        return ArrayInstance(
            number=number,
            pool=pool,
            engine=engine,
            ordered_s=ordered_s,
            ready_s=ready_s,
            place=place,
            clock=self.clock,
            numbers=self._numbers,
            requests=self.requests,
            arrays=self._instances,
        )

    def _members(self) -> list[ArrayInstance]:
        return [one for one in self.manager.instances if isinstance(one, ArrayInstance)]

    def place(self, one: int, pool: str) -> None:
        """Let a request arrive at the instance that the router chooses, or hold it."""
        self._take_changes()
        number, now_s = self._pools.index(pool), self.clock.now
        arrays = (self._numbers, self.requests, self._instances, self._fleet)
        if not place_now(*arrays, number, one, now_s):
            self.held[pool].append(one)

    def place_again(self, given: Iterable[int]) -> None:
        """Place requests that an instance has given up."""
        for one in given:
            self.place(one, self.first_pool if self.requests.to_read[one] else self.last_pool)

    def _take_changes(self) -> None:
        """Tell the kernels of members that have changed."""
        if self._known_changes == self.num_changes:
            return
        self._known_changes = self.num_changes
        for number, pool in enumerate(self._pools):
            places = [one.place for one in self.members[pool]]
            self._fleet.members[number, : len(places)] = places
            self._fleet.num_members[number] = len(places)
        live = [one for one in self._members() if one.has_place]
        self._fleet.live[: len(live)] = [one.place for one in live]
        self._fleet.state[2] = len(live)
        for one in live:
            self._instances.sends[one.place] = one.pool == PROMPT
            self._instances.drains[one.place] = one.drained_from_s is not None

    def simulate_before(self, bound_s: float, bound_class: int) -> float:
        """Simulate up to an event of the clock, or until the fleet has to act; return when."""
        self._take_changes()
        return run_until(
            self._numbers,
            self.requests,
            self._instances,
            self._fleet,
            self._transfers,
            self._progress,
            bound_s,
            bound_class,
        )

    def advance(self, until: Event) -> None:
        """Simulate until an event of the clock."""
        while not until.processed:
            time_s, rank = self.clock.next_event()
            at_s = self.simulate_before(time_s, rank >> 50)
            what, place, one = (int(each) for each in self._fleet.state[3:6])
            if what in (IS_EMPTY, IS_HELD):
                act = self._act_on_empty if what == IS_EMPTY else self._hold
                call = partial(_called, act, place, one)
                self.clock.at(at_s, 0).callbacks.append(call)
            self.clock.step()

    def _act_on_empty(self, place: int, one: int) -> None:
        """Let a drain end; then place the request that the instance had sent last."""
        (instance,) = (each for each in self._members() if each.has_place and each.place == place)
        self.manager.drained(instance)
        if one != NONE:
            self.place(one, self.last_pool)

    def _hold(self, pool: int, one: int) -> None:
        self.held[self._pools[pool]].append(one)

    def rows(self) -> tuple[FleetRow, ...]:
        """Courses of all requests."""
        r = self.requests
        columns = zip(
            self.world.requests,
            r.first_token_s.tolist(),
            r.end_s.tolist(),
            r.longest_gap_s.tolist(),
            r.restarts.tolist(),
            r.prompt_instance.tolist(),
            r.token_instance.tolist(),
            strict=True,
        )
        return tuple(
            FleetRow(
                request=request,
                first_token_s=None if math.isnan(first_s) else first_s,
                end_s=None if math.isnan(end_s) else end_s,
                longest_gap_s=gap_s,
                num_restarts=restarts,
                num_swaps=0,
                cached_tokens=0,
                prompt_instance=prompt,
                token_instance=token,
            )
            for request, first_s, end_s, gap_s, restarts, prompt, token in columns
        )


def _called(act: Callable[[int, int], None], place: int, one: int, event: Event) -> None:
    """Act at an event of the clock."""
    del event
    act(place, one)
