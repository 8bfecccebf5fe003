"""The simulator as a textbook would write it: Resources, Stores, a process for every transfer.

Kept to measure the engines of `des` against, and as an independent check of their makespans. Of the
laws of links it takes those without outages.
"""

import math
from collections.abc import Generator

import simpy

from des import Plan, Topology, Workload
from des.costs.bound_stages import bound_stages
from des.costs.stage_times import stage_times_s
from des.dynamics.link_course import Weather
from des.plan.corrections import NO_CORRECTIONS
from des.schedules import Order, stage_orders

Process = Generator[simpy.Event, object, None]


class _Wire:
    """One direction of a link: whose turn it is, what it offers now, its last arrival."""

    def __init__(self, env: simpy.Environment, topology: Topology, index: int) -> None:
        self.turn = simpy.Resource(env)
        self._env = env
        self._link = topology.links[index]
        self._index = index
        moving = topology.movement
        self._weather = None if moving is None else Weather(moving, topology.links)
        self._last_arrival_s = 0.0

    def transmit(self, num_bytes: float) -> Process:
        """Queue for the wire, put the bytes on it at what it offers, then let them fly."""
        env = self._env
        with self.turn.request() as turn:
            yield turn
            while True:
                bandwidth_bytes_per_s, latency_s, until_s = self._offer()
                if env.now + num_bytes / bandwidth_bytes_per_s <= until_s:
                    break
                sent_bytes = (until_s - env.now) * bandwidth_bytes_per_s
                num_bytes = max(0.0, num_bytes - sent_bytes)  # never below but by rounding
                yield env.timeout(until_s - env.now)
            yield env.timeout(num_bytes / bandwidth_bytes_per_s)
            if self._weather is not None:
                latency_s = self._offer()[1]
        self._last_arrival_s = max(env.now + latency_s, self._last_arrival_s)  # order is kept
        yield env.timeout(self._last_arrival_s - env.now)

    def _offer(self) -> tuple[float, float, float]:
        link = self._link
        if self._weather is None:
            return link.bandwidth_bytes_per_s, link.latency_s, math.inf
        bandwidth, latency, until_s = self._weather.piece(self._index, self._env.now)
        return link.bandwidth_bytes_per_s * bandwidth, link.latency_s * latency, until_s


def plain_makespan_s(topology: Topology, workload: Workload, plan: Plan) -> float:
    """Simulate one iteration; returns when the last stage is done. [s]"""
    env = simpy.Environment()
    stages = plan.placement.stages
    orders = stage_orders(plan.schedule, len(stages), workload.num_microbatches)
    times_s = stage_times_s(workload, bound_stages(topology, plan), NO_CORRECTIONS)
    devices = [simpy.Resource(env) for _ in topology.domains]
    wires = [_Wire(env, topology, index) for index in range(len(topology.links))]
    inboxes = [
        {kind: [simpy.Store(env) for _ in range(workload.num_microbatches)] for kind in "FD"}
        for _ in stages
    ]

    def send(route: tuple[int, ...], inbox: simpy.Store) -> Process:
        for hop in route:
            yield from wires[hop].transmit(workload.message_bytes)
        yield inbox.put("message")

    def work(index: int, order: Order) -> Process:
        here = stages[index].domain
        for kind, microbatch, _ in order:
            message = "F" if kind == "F" else "D"
            receiver = index + 1 if kind == "F" else index - 1
            sender = index - 1 if kind == "F" else index + 1
            if kind != "W" and 0 <= sender < len(stages):
                yield inboxes[index][message][microbatch].get()
            with devices[here].request() as turn:
                yield turn
                yield env.timeout(times_s[index][kind])
            if kind != "W" and 0 <= receiver < len(stages):
                route = topology.route(here, stages[receiver].domain)
                env.process(send(route, inboxes[receiver][message][microbatch]))

    done = env.all_of([env.process(work(index, order)) for index, order in enumerate(orders)])
    env.run(until=done)
    return float(env.now)
