"""The simulator as a textbook would write it: Resources, Stores, a process for every transfer.

Kept to measure the engine of `des` against, and as an independent check of its makespans on links
that stand still.
"""

from collections.abc import Generator

import simpy

from des import Link, Plan, Topology, Workload
from des.corrections import NO_CORRECTIONS
from des.schedules import Order, stage_orders
from des.stage_times import stage_times_s

Process = Generator[simpy.Event, object, None]


def plain_makespan_s(topology: Topology, workload: Workload, plan: Plan) -> float:
    """Simulate one iteration; returns when the last stage is done. [s]"""
    env = simpy.Environment()
    stages = plan.placement.stages
    orders = stage_orders(plan.schedule, len(stages), workload.num_microbatches)
    times_s = stage_times_s(topology, workload, stages, NO_CORRECTIONS)
    devices = [simpy.Resource(env) for _ in topology.domains]
    wires = [simpy.Resource(env) for _ in topology.links]
    inboxes = [
        {kind: [simpy.Store(env) for _ in range(workload.num_microbatches)] for kind in "FD"}
        for _ in stages
    ]

    def transmit(route: tuple[int, ...], inbox: simpy.Store) -> Process:
        for hop in route:
            link: Link = topology.links[hop]
            with wires[hop].request() as turn:
                yield turn
                yield env.timeout(workload.message_bytes / link.bandwidth_bytes_per_s)
            yield env.timeout(link.latency_s)
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
                env.process(transmit(route, inboxes[receiver][message][microbatch]))

    done = env.all_of([env.process(work(index, order)) for index, order in enumerate(orders)])
    env.run(until=done)
    return float(env.now)
