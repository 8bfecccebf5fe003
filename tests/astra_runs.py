"""Runs of the ASTRA-sim engine through its library."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from astra_traces import Case, Node

from astra_sim.core.result import RunResult
from astra_sim.files.execution_trace import Trace, TraceNode
from astra_sim.run.simulate import RunOptions, simulate


def run(
    case: Case, backend: str = "unaware", *, strict: bool = True, options: RunOptions | None = None
) -> RunResult:
    """Simulate a case; its traces are not written, its configurations are."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        case.write_configurations(folder)
        return simulate(
            traces(case),
            folder / "system.json",
            folder / "network.yml",
            memory=folder / "remote_memory.json",
            groups={number: tuple(members) for number, members in case.groups.items()},
            backend=backend,
            options=options or RunOptions(),
            strict=strict,
        )


def traces(case: Case) -> tuple[Trace, ...]:
    """Traces of a case as the reader would return them."""
    return tuple(
        Trace(source=f"trace.{rank}", nodes=trace_nodes(nodes))
        for rank, nodes in enumerate(case.ranks)
    )


def trace_nodes(nodes: Sequence[Node]) -> tuple[TraceNode, ...]:
    """Nodes in ascending id, as the reader returns them."""
    return tuple(
        TraceNode(
            id=node.id,
            name=node.name,
            type=node.type,
            dependencies=tuple(sorted({*node.data_deps, *node.ctrl_deps})),
            duration_ns=node.duration_micros * 1000,
            is_cpu=bool(_attributes(node).get("is_cpu_op", False)),
            attributes=_attributes(node),
        )
        for node in sorted(nodes, key=lambda node: node.id)
    )


def finishes(result: RunResult) -> list[int]:
    """Finishing time of every NPU by rank. [ns]"""
    return [each.finish_cycles for each in sorted(result.ranks, key=lambda each: each.rank)]


def _attributes(node: Node) -> dict[str, Any]:
    return {each.name: _value(each, each.WhichOneof("value")) for each in reversed(node.attr)}


def _value(attribute: Any, kind: str | None) -> Any:
    if kind is None:
        return None
    value = getattr(attribute, kind)
    if kind == "bool_list":
        return tuple(value.values)
    return list(value.values) if kind.endswith("_list") else value
