"""Decision times on GPUs of servers and on nodes of a cluster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from agents.devices.gpu_groups import optimal_groups
from agents.devices.gpu_placement import optimal_placement
from agents.devices.node_request import NodeRequest
from agents.devices.node_sets import choose_nodes
from bench.report import Section, Table, column
from bench.timing import Contestant, Effort, Timing, race
from bench.worlds import SEED
from des.devices.cluster import Cluster, ClusterNode, Switch
from des.devices.patterns import hybrid_cube_mesh, nvswitch, pcie_two_numa
from des.devices.server import Gpu, Server


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTimeRow:
    """One decision on one server."""

    decision: str = column("decision")
    decision_ms: float = column("decision [ms]", ",.3f")
    target: str = column("target (stretch) [ms]")
    spread_percent: float = column("± %", ".0f")


TARGETS = {"4 of 8": "1 (0.2)", "8 of 16": "20 (5)", "64 of 10000 nodes": "200 (50)"}
"""Targets by the first words of a decision."""

NOTE = (
    "All GPUs are free, and seven of ten nodes, drawn at random: 500 leaf switches of 20 nodes "
    "below 20 spines, or 500 of 20 below one. The figures of a server's matrix and its rings are "
    "made in the first call, which is not counted; the sets are looked at in each call."
)


def measure(effort: Effort) -> Section:
    """Time placements by each policy and aim, and divisions into groups."""
    num_leaves = 20 if effort.is_quick else 500
    tables = {
        "Decisions on a server": _decisions(),
        "Sets of nodes": _node_sets(num_leaves, 20),
    }
    return Section(
        name="devices",
        tables=[
            Table(title=title, rows=[_row(timing) for timing in _raced(decisions, effort)])
            for title, decisions in tables.items()
        ],
        notes=[NOTE],
    )


def _raced(
    decisions: Sequence[tuple[str, Callable[[], object]]], effort: Effort
) -> tuple[Timing, ...]:
    return race([Contestant(name=name, call=call) for name, call in decisions], effort)


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


def _node_sets(num_leaves: int, each: int) -> list[tuple[str, Callable[[], object]]]:
    """Sets of nodes of a tree: leaf switches of ``each`` nodes, as many of them below a spine."""
    tree, flat = (_cluster(num_leaves, each, below) for below in (25, num_leaves))
    names = [node.name for node in tree.nodes]
    free = np.random.default_rng(SEED).permutation(names)[: 7 * len(names) // 10].tolist()
    plain = NodeRequest(count=64)
    rich = NodeRequest(
        count=64, data=("leaf3", "leaf7"), preferred_nodes=tuple(names[::7]), spread=(("leaf", 8),)
    )
    count = f"64 of {len(names)} nodes"
    return [
        (f"{count}, tree", lambda: choose_nodes(tree, free, plain)),
        (f"{count}, one spine", lambda: choose_nodes(flat, free, plain)),
        (
            f"{count}, tree, data, preferred, at most 8 a leaf",
            lambda: choose_nodes(tree, free, rich),
        ),
    ]


def _cluster(num_leaves: int, each: int, below: int) -> Cluster:
    num_spines = -(-num_leaves // below)
    return Cluster(
        nodes=tuple(
            ClusterNode(name=f"n{node}", switch=f"leaf{node // each}")
            for node in range(num_leaves * each)
        ),
        switches=(
            *(
                Switch(name=f"leaf{leaf}", level="leaf", parent=f"spine{leaf // below}")
                for leaf in range(num_leaves)
            ),
            *(
                Switch(name=f"spine{spine}", level="spine", parent="core")
                for spine in range(num_spines)
            ),
            Switch(name="core", level="core"),
        ),
    )


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
