"""Lines about a whole run: its rings at the beginning, nodes that keep their slots at the end."""

from collections.abc import Iterable, Mapping

from astra_sim.core.events import Log
from astra_sim.files.execution_trace import TraceNode
from astra_sim.files.network_config import NetworkConfig
from astra_sim.files.system_config import Algorithm, SystemConfig
from astra_sim.workload.rank import Slot, slot_of

RINGS = ("ring", "direct", "halvingDoubling")
"""Algorithms that see the NPUs of a dimension as a ring."""


def announce_rings(
    system: SystemConfig, network: NetworkConfig, groups: Mapping[int, tuple[int, ...]], log: Log
) -> None:
    """Name each ring of NPU 0, and that of each group smaller than the system."""
    for kind, algorithms in system.algorithms.items():
        collective = kind.name.lower().replace("_", "-")
        for dimension, algorithm in enumerate(algorithms):
            if algorithm.name in RINGS:
                ring = _ring(algorithm, dimension, network)
                log("system", "info", f"{collective} ring of sys[0], dimension {dimension}: {ring}")
            if algorithm.whole_system:
                break
    for number, members in sorted(groups.items()):
        if len(members) < network.num_npus:
            log("system", "info", f"ring of group {number}: {_list(members)}")


def report_end(in_flight: Iterable[tuple[int, Iterable[TraceNode]]], log: Log) -> None:
    """Name the nodes in flight of each rank that still hold a slot, then say goodbye."""
    for rank, nodes in in_flight:
        held: dict[Slot, list[int]] = {}
        for node in sorted(nodes, key=lambda node: node.id):
            held.setdefault(slot_of(node), []).append(node.id)
        held.pop(Slot.RECEIVE, None)
        if not held:
            continue
        log(
            "workload",
            "critical",
            f"!!!Hardware Resource sys.id={rank} has unreleased nodes!!!",
        )
        for slot, numbers in sorted(held.items()):
            log("workload", "critical", f"{slot.name.lower()} slot: {_list(numbers)}")
    log("system", "warning", "Exiting")


def _ring(algorithm: Algorithm, dimension: int, network: NetworkConfig) -> str:
    if algorithm.whole_system:
        return f"all {network.num_npus} NPUs"
    return _list(network.neighbours(0, dimension))


def _list(numbers: Iterable[int]) -> str:
    return ", ".join(str(number) for number in numbers)
