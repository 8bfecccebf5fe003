"""Exposed communication: the part of an iteration that waits for messages."""

from dataclasses import replace

from des.dynamics import STEADY
from des.engine.result import IterationResult
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.simulation.iteration import simulate
from des.world.topology import Topology
from des.world.transport import PLAIN

FREE_BANDWIDTH_BYTES_PER_S = 1e300
"""Bandwidth at which the time of a message vanishes in a float."""


def exposed_communication_s(
    result: IterationResult,
    topology: Topology,
    workload: Workload,
    plan: Plan,
    corrections: Corrections = NO_CORRECTIONS,
) -> float:
    """Time by which the network makes an iteration longer. [s]

    Parameters
    ----------
    result
        Result of `des.simulation.iteration.simulate` for the other arguments.

    Returns
    -------
    float
        Makespan of the result, less that of the same plan on links that cost nothing.

    Notes
    -----
    Passes take as long either way, so each device in use stands idle that much longer, and the rest
    of its idle time is the bubble of the schedule. Wire time that computing covers is hidden and
    does not count. Free links take no time for any message, whatever the transport and corrections
    say; messages keep their routes, and exchanges inside a domain their time. A schedule that looks
    at the links may order the work otherwise where they are free.

    Never negative where the orders are the same and every device has one stage, as a later message
    then makes nothing earlier. Where several stages share a device first come, first served, slower
    messages can by luck bring a better order and a negative exposure.
    """
    free_corrections = replace(corrections, message_overhead_s=0.0, wan_bandwidth_factor=1.0)
    free = simulate(_with_free_links(topology), workload, plan, free_corrections)
    return result.makespan_s - free.makespan_s


def _with_free_links(topology: Topology) -> Topology:
    """Return the world with links that take no time, on the same routes."""
    latencies_s = tuple(link.latency_s for link in topology.links)
    return replace(
        topology,
        links=tuple(
            replace(link, bandwidth_bytes_per_s=FREE_BANDWIDTH_BYTES_PER_S, latency_s=0.0)
            for link in topology.links
        ),
        dynamics=STEADY,
        movement=None,
        routing_latencies_s=topology.routing_latencies_s or latencies_s,
        transport=PLAIN,
    )
