"""Reader of ``lscpu``: NUMA nodes with their CPUs, where ``numactl`` is not installed."""

import re
from collections.abc import Sequence

from des.devices.server import NumaNode
from des.devices.spans import parse_spans

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
