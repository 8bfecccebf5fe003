"""Decision times on GPUs of servers, exact and greedy, and on nodes of a cluster."""

from collections.abc import Callable
from dataclasses import dataclass

from agents.devices.gpu_groups import optimal_groups
from agents.devices.gpu_placement import optimal_placement
from bench.clusters import node_set_decisions
from bench.report import Section, Table, column
from bench.timing import Contestant, Effort, Timing, race
from des.devices.patterns import hybrid_cube_mesh, nvswitch, pcie_two_numa
from des.devices.server import Gpu, Server


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTimeRow:
    """One decision on one server or cluster."""

    decision: str = column("decision")
    decision_ms: float = column("decision [ms]", ",.3f")
    target: str = column("target (stretch) [ms]")
    spread_percent: float = column("± %", ".0f")


TARGETS = {"4 of 8": "1 (0.2)", "8 of 16": "20 (5)", "64 of 10k nodes": "200 (50)"}
"""Targets by the first words of a decision."""

NOTE = (
    "All GPUs, and half of the nodes, are free. The figures of a server's matrix and its rings are "
    "made in the first call, which is not counted; the sets are looked at in each call."
)


def measure(effort: Effort) -> Section:
    """Time placements by each policy and aim, and divisions into groups."""
    timings = race([Contestant(name=name, call=call) for name, call in _decisions()], effort)
    sets = race([Contestant(name=name, call=call) for name, call in node_set_decisions()], effort)
    return Section(
        name="devices",
        tables=[
            Table(title="Decisions on a server", rows=list(map(_row, timings))),
            Table(title="Sets of nodes of a cluster", rows=list(map(_row, sets))),
        ],
        notes=[NOTE],
    )


def _decisions() -> list[tuple[str, Callable[[], object]]]:
    cube, switch = _server(hybrid_cube_mesh()), _server(nvswitch(16))
    pcie, large = _server(pcie_two_numa(16)), _server(nvswitch(72))
    return [
        ("4 of 8, cube mesh", lambda: optimal_placement(cube, 4)),
        ("4 of 8, cube mesh, restricted", lambda: optimal_placement(cube, 4, None, "restricted")),
        ("4 of 8, cube mesh, by time", lambda: optimal_placement(cube, 4, by="time")),
        ("8 of 16, NVSwitch", lambda: optimal_placement(switch, 8)),
        ("8 of 16, PCIe", lambda: optimal_placement(pcie, 8)),
        ("8 of 16, PCIe, restricted", lambda: optimal_placement(pcie, 8, None, "restricted")),
        ("8 of 16, PCIe, by time", lambda: optimal_placement(pcie, 8, by="time")),
        ("groups of 2, 8 GPUs, cube mesh", lambda: optimal_groups(cube, 2)),
        ("groups of 2, 16 GPUs, PCIe", lambda: optimal_groups(pcie, 2)),
        ("8 of 72, NVSwitch, greedy", lambda: optimal_placement(large, 8)),
    ]


def _server(classes: list[list[str]]) -> Server:
    """Server of a matrix; half of its GPUs at each NUMA node."""
    half = len(classes) // 2
    return Server(
        name="bench",
        gpus=tuple(Gpu(number=gpu, numa_nodes=(gpu // half,)) for gpu in range(2 * half)),
        tokens=tuple(map(tuple, classes)),
    )


def _row(timing: Timing) -> DecisionTimeRow:
    return DecisionTimeRow(
        decision=timing.name,
        decision_ms=1e3 / timing.items_per_s,
        target=TARGETS.get(timing.name.split(",")[0], ""),
        spread_percent=1e2 * timing.spread_fraction,
    )
