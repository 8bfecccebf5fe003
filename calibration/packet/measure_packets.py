"""Cases measured packet by packet, by a child process that one case leaves to the next."""

import atexit
from functools import partial

from calibration.cases.case import Measurement, PlacementCase
from calibration.fit.prediction import measurement_of
from calibration.packet.links import PacketLinks
from calibration.packet.process import PacketProcess, ns3_version
from calibration.reference.astra_config import require_queues
from des.engine.result import IterationResult
from des.program.lowering import lower
from des.program.program import Program
from des.simulation.stepped import simulate_stepped
from des.world.topology import Topology

ANSWER_LIMIT_S = 600.0
"""Limit of ns-3 until its next answer (default). [s]"""

FACADE_REVISION = 2
"""Counted up by each change of the facade or of the way to play it that changes times."""

_PROCESSES: list[PacketProcess] = []
"""The child of this process, if it has one: loading ns-3 takes longer than most cases."""


def measure_packets(case: PlacementCase, *, limit_s: float) -> Measurement:
    """Simulate an iteration whose messages between domains are packets.

    Parameters
    ----------
    limit_s
        Most time that ns-3 may take until its next answer. [s]

    Raises
    ------
    ValueError
        If ``granularity`` is not ``domain``, messages do not queue, or a figure of the world is
        one that a network of packets cannot have.
    ReferenceRunError
        If ns-3 is not installed, died or took too long.
    """
    if case.granularity != "domain":
        raise ValueError(
            "backend ns3: granularity must be domain, as only messages between domains are "
            f"packets; got {case.granularity}"
        )
    require_queues(case.topology, "ns3")
    program = lower(case.topology, case.workload, case.plan)
    result = simulate_packets(case.topology, program, limit_s=limit_s)
    return measurement_of(case, result)


def simulate_packets(
    topology: Topology, program: Program, *, limit_s: float = ANSWER_LIMIT_S
) -> IterationResult:
    """Run the program of an iteration, its messages between domains as packets.

    Raises
    ------
    ValueError
        If a figure of the world is one that a network of packets cannot have.
    ReferenceRunError
        If ns-3 is not installed, died or took too long.
    """
    open_links = partial(PacketLinks, process=shared_process(limit_s=limit_s))
    return simulate_stepped(topology, program, open_links)


def packets_version() -> str:
    """Version of the network of packets in the keys of runs."""
    return f"ns-{ns3_version()}, facade {FACADE_REVISION}"


def shared_process(*, limit_s: float) -> PacketProcess:
    """Return the child of this process, started if there is none that answers."""
    if not _PROCESSES or not _PROCESSES[0].is_alive:
        _close_all()
        _PROCESSES.append(PacketProcess())
    process = _PROCESSES[0]
    process.limit_s = limit_s
    return process


def child_cpu_s() -> float:
    """CPU time that the child of this process has used; 0 without one. [s]"""
    return _PROCESSES[0].cpu_s if _PROCESSES else 0.0


def _close_all() -> None:
    while _PROCESSES:
        _PROCESSES.pop().close()


atexit.register(_close_all)
