"""Free GPUs of a cluster: which nodes have how many, kept as bit masks so that every query is fast.

A mask of nodes is a whole number whose bit i stands for node i; a mask of GPUs likewise. The first
node with k free GPUs is the lowest set bit of one number, on 1,024 nodes in well below a
microsecond.
"""

from collections.abc import Iterator

from des.cluster.node_set import NodeSet

Allocation = tuple[tuple[int, int], ...]
"""GPUs of a job: (node, mask of its GPUs) in the order of nodes."""


def lowest_bit(mask: int) -> int:
    """Position of the lowest set bit.

    Examples
    --------
    >>> lowest_bit(0b1000)
    3
    """
    return (mask & -mask).bit_length() - 1


def positions(mask: int) -> Iterator[int]:
    """Positions of the set bits, lowest first.

    Examples
    --------
    >>> list(positions(0b1010))
    [1, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class FreeCounts:
    """Free GPUs by node.

    Attributes
    ----------
    num_free, num_present
        GPUs free, and all GPUs, of the nodes that take jobs.
    num_whole
        Free GPUs of nodes that are wholly free.
    free_of
        Free GPUs of each node, also of one that takes no jobs now.
    with_free
        Mask of the nodes that have exactly k free GPUs and take jobs, by k from 1.
    """

    def __init__(self, nodes: NodeSet) -> None:
        self.nodes = nodes
        self._size = [node.num_gpus for node in nodes.nodes]
        self._gpus = [(1 << size) - 1 for size in self._size]
        self.free_of = list(self._size)
        self.most_per_node = max(self._size)
        self.with_free = [0] * (self.most_per_node + 1)
        self._takes = 0
        self.num_free = self.num_present = self.num_whole = 0
        self._first_gpu = [sum(self._size[:position]) for position in range(len(self._size))]
        self._masks: dict[tuple[str, str], int] = {}
        self._units: dict[str, tuple[int, ...]] = {}

    def takes_jobs(self, node: int) -> bool:
        """Whether a node is there and takes jobs."""
        return bool(self._takes >> node & 1)

    def open_node(self, node: int) -> None:
        """Let a node take jobs."""
        if self.takes_jobs(node):
            return
        bit, free = 1 << node, self.free_of[node]
        self._takes |= bit
        self.with_free[free] |= bit
        self.num_free += free
        self.num_present += self._size[node]
        if free == self._size[node]:
            self.num_whole += free

    def close_node(self, node: int) -> None:
        """Let a node take no more jobs; those that it has may stay."""
        if not self.takes_jobs(node):
            return
        bit, free = 1 << node, self.free_of[node]
        self._takes ^= bit
        self.with_free[free] ^= bit
        self.num_free -= free
        self.num_present -= self._size[node]
        if free == self._size[node]:
            self.num_whole -= free

    def nodes_with(self, least: int) -> int:
        """Mask of the nodes that have at least so much free, from 1 on."""
        found = 0
        for mask in self.with_free[least:]:
            found |= mask
        return found

    def unit_masks(self, level: str) -> tuple[int, ...]:
        """Masks of the nodes of each unit of a level."""
        if level not in self._units:
            self._units[level] = tuple(
                sum(1 << node for node in members)
                for members in self.nodes.level_units(level).values()
            )
        return self._units[level]

    def allowed(self, domain: str, gpu_type: str) -> int:
        """Mask of the nodes of a domain and type; all nodes where none is named."""
        if not domain and not gpu_type:
            return -1
        key = domain, gpu_type
        if key not in self._masks:
            self._masks[key] = sum(
                1 << position
                for position, node in enumerate(self.nodes.nodes)
                if domain in ("", node.domain) and gpu_type in ("", node.gpu_type)
            )
        return self._masks[key]

    def free_in(self, mask: int) -> int:
        """Free GPUs of the nodes of a mask."""
        if mask == -1:
            return self.num_free
        return sum(count * (nodes & mask).bit_count() for count, nodes in enumerate(self.with_free))

    def first_gpus(self, node: int, count: int) -> tuple[int, int]:
        """Pick the lowest free GPUs of a node."""
        free = self._gpus[node]
        if count == 1:
            return node, free & -free
        picked = 0
        for _ in range(count):
            low = free & -free
            picked |= low
            free ^= low
        return node, picked

    def take(self, allocation: Allocation) -> None:
        """Take GPUs that are free."""
        for node, gpus in allocation:
            assert self._gpus[node] & gpus == gpus, f"GPUs of node {node} are not free"
            self._gpus[node] ^= gpus
            self._move(node, -gpus.bit_count())

    def give(self, allocation: Allocation) -> None:
        """Give GPUs back."""
        for node, gpus in allocation:
            assert not self._gpus[node] & gpus, f"GPUs of node {node} are free already"
            self._gpus[node] |= gpus
            self._move(node, gpus.bit_count())

    def _move(self, node: int, change: int) -> None:
        before = self.free_of[node]
        after = self.free_of[node] = before + change
        if self._takes >> node & 1:
            bit, size = 1 << node, self._size[node]
            self.with_free[before] ^= bit
            self.with_free[after] ^= bit
            self.num_free += change
            if before == size:
                self.num_whole -= size
            elif after == size:
                self.num_whole += size

    def numbers(self, allocation: Allocation) -> tuple[int, ...]:
        """Numbers of GPUs, which run on from node to node from 0."""
        return tuple(
            self._first_gpu[node] + gpu for node, gpus in allocation for gpu in positions(gpus)
        )
