"""Timeline of a run for ui.perfetto.dev and chrome://tracing.

Every NPU is a process; what it computes, communicates, receives, moves to or from remote memory
and runs on its CPU are threads. Nodes of one kind that overlap, as receives often do, are spread
over as many threads as they need. Arrows lead from each send to the receive it was matched with.

References
----------
.. [1] Trace Event Format, the Chromium project's documentation of the JSON that Catapult and
   Perfetto read: complete ("X"), metadata ("M") and flow ("s", "f") events.
"""

import errno
import json
import os
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Any

from astra_sim.core.result import NodeSpan
from astra_sim.files.execution_trace import CollectiveType, NodeType, TraceNode
from astra_sim.workload.nodes import message_key

Event = dict[str, Any]

NS_PER_US = 1000

_CPU = "cpu"
_THREAD_OF_TYPE = {
    NodeType.COMP: "compute",
    NodeType.COMM_SEND: "communication",
    NodeType.COMM_COLL: "communication",
    NodeType.COMM_RECV: "receives",
    NodeType.MEM_LOAD: "memory",
    NodeType.MEM_STORE: "memory",
    NodeType.INVALID: "invalid",
}
_THREADS = ("compute", "communication", "memory", _CPU, "invalid", "receives")
"""Rows of a rank, from top to bottom."""


def write_perfetto_trace(
    path: str | Path, spans: Sequence[Iterable[NodeSpan]], *, replays: bool = False
) -> None:
    """Write a trace file, event by event; it appears whole or not at all.

    Parameters
    ----------
    path
        Path of the file; an old one stays until the new one is complete.
    spans
        Spans of each NPU, rank by rank.
    replays
        Whether every node only lasted its recorded duration: nothing was sent then, so nodes bear
        their own names and there are no arrows.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written, or a folder stands there.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    neighbour = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with neighbour.open("x", encoding="ascii", newline="\n") as file:
            file.write('{"displayTimeUnit": "ns", "traceEvents": [')
            separator = "\n"
            for event in trace_events(spans, replays=replays):
                file.write(separator + json.dumps(event, allow_nan=False))
                separator = ",\n"
            file.write("\n]}\n")
        neighbour.replace(path)
    except BaseException:
        neighbour.unlink(missing_ok=True)
        raise


def trace_events(spans: Sequence[Iterable[NodeSpan]], *, replays: bool = False) -> Iterator[Event]:
    """Yield the events of a trace file; see `write_perfetto_trace`. Times are microseconds.

    Slices come before arrows, as an end of an arrow binds to the slice that began last on its
    thread. Numbers of threads are unique, as some viewers tell threads apart by nothing else.
    """
    slices: list[_Slice] = []
    threads = count(len(spans) + 1)
    for rank, of_rank in enumerate(spans):
        yield from _name("process", rank, 0, f"NPU {rank}", rank)
        for position, (name, thread_spans) in enumerate(_threads(of_rank)):
            thread = next(threads)
            yield from _name("thread", rank, thread, name, position)
            slices += (_Slice(rank, thread, span) for span in thread_spans)
    for shown in slices:
        yield _complete(shown, replays=replays)
    if not replays:
        yield from _arrows(slices)


@dataclass(frozen=True, slots=True)
class _Slice:
    """A node as it is drawn."""

    rank: int
    thread: int
    span: NodeSpan

    @property
    def track(self) -> Event:
        return {"pid": _process(self.rank), "tid": self.thread}


def _process(rank: int) -> int:
    """Processes count from 1: 0 means the idle process of a machine."""
    return rank + 1


def _name(what: str, rank: int, thread: int, name: str, position: int) -> Iterator[Event]:
    track = {"pid": _process(rank), "tid": thread}
    yield {"ph": "M", "name": f"{what}_name", **track, "args": {"name": name}}
    yield {"ph": "M", "name": f"{what}_sort_index", **track, "args": {"sort_index": position}}


def _threads(spans: Iterable[NodeSpan]) -> Iterator[tuple[str, list[NodeSpan]]]:
    """Sort the nodes of a rank into named threads, each of which does one thing at a time."""
    kinds: defaultdict[str, list[NodeSpan]] = defaultdict(list)
    for span in sorted(spans, key=lambda span: (span.start_ns, span.end_ns)):
        node = span.node
        kinds[_CPU if node.is_cpu else _THREAD_OF_TYPE[NodeType(node.type)]].append(span)
    for name in _THREADS:
        for number, lane in enumerate(_lanes(kinds[name]), start=1):
            yield name if number == 1 else f"{name} {number}", lane


def _lanes(spans: Iterable[NodeSpan]) -> list[list[NodeSpan]]:
    """Give each node, by time of its start, the first lane where no other is running.

    A node that takes no time blocks its lane for a nanosecond, so that no two start together.
    """
    lanes: list[list[NodeSpan]] = []
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    for span in spans:
        while busy and busy[0][0] <= span.start_ns:
            heappush(free, heappop(busy)[1])
        if not free:
            heappush(free, len(lanes))
            lanes.append([])
        lane = heappop(free)
        lanes[lane].append(span)
        heappush(busy, (max(span.end_ns, span.start_ns + 1), lane))
    return lanes


def _complete(shown: _Slice, *, replays: bool) -> Event:
    span = shown.span
    node = span.node
    title, args = ("", {}) if replays else _description(shown.rank, node)
    return {
        "ph": "X",
        "ts": span.start_ns / NS_PER_US,
        "dur": (span.end_ns - span.start_ns) / NS_PER_US,
        "name": title or node.name or f"node {node.id}",
        "cat": NodeType(node.type).name,
        **shown.track,
        "args": {"id": node.id, "node": node.name, **args},
    }


def _description(rank: int, node: TraceNode) -> tuple[str, Event]:
    """Title and details of what a node does; no title where its own name says it best."""
    if node.type in (NodeType.COMM_SEND, NodeType.COMM_RECV):
        tag, source, target, num_bytes = message_key(rank, node)
        sends = node.type == NodeType.COMM_SEND
        peer = target if sends else source
        verb = f"send to {peer}" if sends else f"receive from {peer}"
        details = {"tag": tag, "peer": peer, "bytes": num_bytes}
        return f"{verb}, tag {tag}, {num_bytes} bytes", details
    if node.type == NodeType.COMM_COLL:
        kind = CollectiveType(node.unsigned64("comm_type")).name
        num_bytes, group = node.unsigned64("comm_size"), node.text("pg_name", "")
        title = f"{kind}, {num_bytes} bytes" + (f", group {group}" if group else "")
        return title, {"collective": kind, "bytes": num_bytes, "group": group}
    if node.type in (NodeType.MEM_LOAD, NodeType.MEM_STORE):
        num_bytes = node.unsigned64("tensor_size")
        verb = "load" if node.type == NodeType.MEM_LOAD else "store"
        return f"{verb} {num_bytes} bytes", {"bytes": num_bytes}
    return "", {}


def _arrows(slices: Iterable[_Slice]) -> Iterator[Event]:
    """Join the k-th send to the k-th receive of the same tag, ends and size.

    Both complete in the order in which they were posted, which is how they were matched.
    """
    sends: defaultdict[tuple[int, ...], list[_Slice]] = defaultdict(list)
    receives: defaultdict[tuple[int, ...], list[_Slice]] = defaultdict(list)
    for shown in slices:
        node = shown.span.node
        if node.type == NodeType.COMM_SEND:
            sends[message_key(shown.rank, node)].append(shown)
        elif node.type == NodeType.COMM_RECV:
            receives[message_key(shown.rank, node)].append(shown)
    numbers = count()
    for key, of_key in sends.items():
        in_order = sorted(of_key, key=_period), sorted(receives[key], key=_period)
        for sent, received in zip(*in_order, strict=False):  # some may have no counterpart
            yield from _arrow(next(numbers), sent, received)


def _period(shown: _Slice) -> tuple[int, int]:
    return shown.span.start_ns, shown.span.end_ns


def _arrow(number: int, sent: _Slice, received: _Slice) -> tuple[Event, Event]:
    """Arrow from the start of the send to the last nanosecond of the receive."""
    start_ns = sent.span.start_ns
    end_ns = max(received.span.end_ns - 1, received.span.start_ns, start_ns)
    flow = {"id": number, "name": "message", "cat": "message"}
    return (
        {"ph": "s", "ts": start_ns / NS_PER_US, **flow, **sent.track},
        {"ph": "f", "bp": "e", "ts": end_ns / NS_PER_US, **flow, **received.track},
    )
