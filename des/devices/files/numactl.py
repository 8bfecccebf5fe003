"""Readers of ``numactl --hardware``: NUMA nodes with CPUs, memory and distances; and of ``lscpu``.

The latter has CPUs alone, for machines where ``numactl`` is not installed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from des.base.checks import prefixed_errors
from des.devices.server import NumaNode
from des.devices.spans import Span, numbers_in, parse_spans, spans_of

_MIB = 2.0**20
_AVAILABLE = re.compile(r"\s*available:\s*(\d+) nodes? \((.*)\)\s*")
_CPUS = re.compile(r"\s*node (\d+) cpus:(.*)")
_MEMORY = re.compile(r"\s*node (\d+) (size|free):\s*(?:(\d+) ([KMG]B)|<not available>)\s*")
_HEADING = re.compile(r"\s*node((?:\s+\d+)+)\s*")
_DISTANCES = re.compile(r"\s*(\d+):((?:\s+\d+)+)\s*")
_NUMBERS = re.compile(r"\s*\d[\d\s,-]*")
_WORTH = {"KB": _MIB / 1024, "MB": _MIB, "GB": _MIB * 1024}


def has_numa_nodes(lines: Sequence[str]) -> bool:
    """Whether some lines hold the output of the command."""
    return any(_AVAILABLE.fullmatch(line) for line in lines)


def read_numa_nodes(lines: Sequence[str]) -> tuple[NumaNode, ...]:
    """Read the nodes of a machine; sizes of the command are in units of 1024 x 1024 bytes.

    Raises
    ------
    ValueError
        If a node is missing or given twice, a line was cut, or the table of distances is not
        complete; names the line or the nodes.
    """
    starts = [number for number, line in enumerate(lines) if _AVAILABLE.fullmatch(line)]
    if len(starts) != 1:
        raise ValueError(f"must hold one output of numactl --hardware, got {len(starts)}")
    found = _AVAILABLE.fullmatch(lines[starts[0]])
    assert found is not None
    listed = numbers_in(parse_spans(found[2].replace(" ", "")))
    if int(found[1]) != len(listed):
        raise ValueError(f"line {starts[0] + 1}: {found[1]} nodes must be listed, got ({found[2]})")
    read = _Reading(listed=listed)
    for number, line in enumerate(lines[starts[0] + 1 :], start=starts[0] + 2):
        with prefixed_errors(f"line {number}: "):
            if not read.take(line):
                break
    _check_nodes(read)
    return tuple(
        NumaNode(
            number=node,
            cpus=read.cpus[node],
            memory_bytes=read.memory.get((node, "size")),
            free_bytes=read.memory.get((node, "free")),
            distances=read.distances.get(node, ()),
        )
        for node in listed
    )


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Lines read so far, by node."""

    listed: tuple[int, ...]
    cpus: dict[int, tuple[Span, ...]] = field(default_factory=dict)
    memory: dict[tuple[int, str], float | None] = field(default_factory=dict)
    distances: dict[int, tuple[int, ...]] = field(default_factory=dict)
    wrapped: int | None = None
    """Node whose CPUs the line before had: a terminal may have broken them into several lines."""

    def take(self, line: str) -> bool:
        """Read a line; return whether the output can go on after it."""
        if found := _CPUS.fullmatch(line):
            self._take_cpus(int(found[1]), found[2])
            return True
        if _NUMBERS.fullmatch(line):
            self._take_more_cpus(line)
            return True
        self.wrapped = None
        if found := _MEMORY.fullmatch(line):
            if (int(found[1]), found[2]) in self.memory:
                raise ValueError(f"{found[2]} of node {found[1]} is given twice")
            size = float(found[3]) * _WORTH[found[4]] if found[3] else None
            self.memory[int(found[1]), found[2]] = size
        elif found := _DISTANCES.fullmatch(line):
            self._take_distances(int(found[1]), found[2].split())
        elif found := _HEADING.fullmatch(line):
            if tuple(int(word) for word in found[1].split()) != self.listed:
                raise ValueError(
                    f"the table of distances must be of nodes {' '.join(map(str, self.listed))}, "
                    f"got {found[1].strip()}"
                )
        else:
            return not line.strip() or line.strip() == "node distances:"
        return True

    def _take_cpus(self, node: int, text: str) -> None:
        if node in self.cpus:
            raise ValueError(f"CPUs of node {node} are given twice")
        self.cpus[node] = _cpu_list(text)
        self.wrapped = node

    def _take_more_cpus(self, line: str) -> None:
        before = self.cpus.get(-1 if self.wrapped is None else self.wrapped)
        more = _cpu_list(line)
        if self.wrapped is None or not before or more[0][0] <= before[-1][1]:
            raise ValueError(f"must begin with its node, got {line.strip()!r}: a line was cut")
        self.cpus[self.wrapped] = spans_of(numbers_in((*before, *more)))

    def _take_distances(self, node: int, words: Sequence[str]) -> None:
        if node in self.distances or len(words) != len(self.listed):
            raise ValueError(
                f"distances of node {node} must be given once, {len(self.listed)} of them, "
                f"got {' '.join(words)}"
            )
        self.distances[node] = tuple(int(word) for word in words)


def _cpu_list(text: str) -> tuple[Span, ...]:
    """Read rising numbers, or ranges with their count in brackets (``--cpu-compress``)."""
    listed = re.sub(r"\(\d+\)\s*$", "", text).replace(",", " ").split()
    if not listed:
        return ()
    with prefixed_errors("CPUs "):
        spans = parse_spans(",".join(listed))
    if list(spans) != sorted(spans):
        raise ValueError(f"CPUs must rise, got {text.strip()!r}")
    return spans_of(numbers_in(spans))


def _check_nodes(read: _Reading) -> None:
    """Refuse lines about some nodes alone, and about nodes that are not listed."""
    sizes = {what: {node for node, of in read.memory if of == what} for what in ("size", "free")}
    for what, given in {"cpus": set(read.cpus), **sizes, "distances": set(read.distances)}.items():
        if given != set(read.listed) and (given or what == "cpus"):
            raise ValueError(
                f"numactl: {what} must be given of nodes {' '.join(map(str, read.listed))}, "
                f"got those of {' '.join(map(str, sorted(given))) or 'none'}"
            )


_COUNT = re.compile(r"\s*NUMA node\(s\):\s*(\d+)\s*")
_NODE = re.compile(r"\s*NUMA node(\d+) CPU\(s\):\s*(\S*)\s*")


def has_lscpu(lines: Sequence[str]) -> bool:
    """Whether some lines hold the output of the command."""
    return any(_COUNT.fullmatch(line) for line in lines)


def read_lscpu(lines: Sequence[str]) -> tuple[NumaNode, ...]:
    """Read the nodes of a machine; memory and distances are not printed.

    Raises
    ------
    ValueError
        If there are not as many nodes as the output says.

    Examples
    --------
    >>> lines = ["NUMA node(s):       2", "NUMA node0 CPU(s):  0-3,8", "NUMA node1 CPU(s):  4-7"]
    >>> [(node.number, node.cpus) for node in read_lscpu(lines)]
    [(0, ((0, 3), (8, 8))), (1, ((4, 7),))]
    """
    counts = [int(found[1]) for line in lines if (found := _COUNT.fullmatch(line))]
    nodes = [found for line in lines if (found := _NODE.fullmatch(line))]
    if counts != [len(nodes)]:
        raise ValueError(f"lscpu: NUMA node(s) must be {len(nodes)}, those listed; got {counts}")
    return tuple(
        NumaNode(number=int(node[1]), cpus=parse_spans(node[2]) if node[2] else ())
        for node in nodes
    )
