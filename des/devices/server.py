"""A server: GPUs, network cards and NUMA nodes, and how every two devices are joined."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from des.base.checks import require_non_negative, require_optional_positive
from des.devices.closeness import RELATIONS, Relation, distance, num_nvlinks, relation
from des.devices.spans import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU of a server.

    Attributes
    ----------
    number
        As the driver counts: GPU3 is 3.
    model
        Row of the figures of GPUs, such as ``a100``; None if not known.
    cpus, numa_nodes
        CPUs and NUMA nodes near it; empty where the machine does not say.
    memory_numa_node
        Node that its own memory is, on machines where it is one (Grace); else None.
    nvlink_bytes_per_s
        Line rate of one of its NVLinks, each way; None if not known.
    pci_address, pcie_root
        Address such as ``0000:1b:00.0``, and root complex such as ``pci0000:1a``; None if not
        known.
    mig_devices
        Profiles of the MIG devices that it is divided into, such as ``3g.20gb``; empty if whole.
    """

    number: int
    model: str | None = None
    cpus: tuple[Span, ...] = ()
    numa_nodes: tuple[int, ...] = ()
    memory_numa_node: int | None = None
    nvlink_bytes_per_s: float | None = None
    pci_address: str | None = None
    pcie_root: str | None = None
    mig_devices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_optional_positive(self.name, "nvlink_bytes_per_s", self.nvlink_bytes_per_s)

    @property
    def name(self) -> str:
        """Label of its row, such as ``GPU3``."""
        return f"GPU{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """A network card of a server.

    ``name`` is the label of its row (``NIC0``, or ``mlx5_0`` with older drivers), ``device`` what
    the system calls it, None if not known; so its NUMA node and its bandwidth.
    """

    name: str
    device: str | None = None
    numa_node: int | None = None
    bandwidth_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        rate = self.bandwidth_bytes_per_s
        require_optional_positive(f"network card {self.name}", "bandwidth_bytes_per_s", rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    """A NUMA node: CPUs with the memory next to them.

    ``distances`` are those of the firmware's table (SLIT), by place of the node in
    `Server.numa_nodes`; 10 is the node itself. A node without CPUs is memory alone.
    """

    number: int
    cpus: tuple[Span, ...] = ()
    memory_bytes: float | None = None
    free_bytes: float | None = None
    distances: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for field in ("memory_bytes", "free_bytes"):
            if getattr(self, field) is not None:
                require_non_negative(f"NUMA node {self.number}", field, getattr(self, field))


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server: its devices, and the token of every two of them.

    Attributes
    ----------
    name
        Kind of the server, or the file that it was read from.
    tokens
        Square and symmetric, ``X`` on the diagonal: rows of the GPUs first, then of the cards.
    numa_nodes
        Empty where they are not known; then the GPUs may still have numbers of nodes.
    """

    name: str
    gpus: tuple[Gpu, ...]
    nics: tuple[Nic, ...] = ()
    tokens: tuple[tuple[str, ...], ...]
    numa_nodes: tuple[NumaNode, ...] = ()

    def __post_init__(self) -> None:
        owner = f"server {self.name}"
        if not self.gpus:
            raise ValueError(f"{owner}: gpus must be at least one, got none")
        for field, names in (
            ("gpus", [gpu.number for gpu in self.gpus]),
            ("nics", [nic.name for nic in self.nics]),
            ("numa_nodes", [node.number for node in self.numa_nodes]),
        ):
            if len(set(names)) < len(names):
                raise ValueError(f"{owner}: {field} must differ, got {names}")
        self._check_tokens(owner)
        for node in self.numa_nodes:
            if node.distances and len(node.distances) != len(self.numa_nodes):
                raise ValueError(
                    f"{owner}: distances of NUMA node {node.number} must be "
                    f"{len(self.numa_nodes)}, one a node, got {len(node.distances)}"
                )

    def _check_tokens(self, owner: str) -> None:
        count = len(self.gpus) + len(self.nics)
        if [len(row) for row in self.tokens] != [count] * count:
            raise ValueError(
                f"{owner}: tokens must be {count} rows of {count}, "
                f"got rows of {[len(row) for row in self.tokens]}"
            )
        for one, other in self._pairs(count):
            here, back = self.tokens[one][other], self.tokens[other][one]
            place = f"{owner}: token of {self.device_names[one]} and {self.device_names[other]}"
            try:
                is_own = relation(here) == "X"
            except ValueError as error:
                raise ValueError(f"{place}: {error}") from None
            if is_own != (one == other):
                allowed = "X" if one == other else "one of two devices, not X"
                raise ValueError(f"{place} must be {allowed}, got {here!r}")
            if here != back:
                raise ValueError(f"{place} must be the same both ways, got {here!r} and {back!r}")

    @staticmethod
    def _pairs(count: int) -> Iterator[tuple[int, int]]:
        return ((one, other) for one in range(count) for other in range(one + 1))

    @property
    def num_gpus(self) -> int:
        """All GPUs, taken ones too."""
        return len(self.gpus)

    def require_whole_gpus(self) -> Self:
        """Return the server itself if no GPU is divided into MIG devices, which take no such job.

        Raises
        ------
        ValueError
            If one is; names it and its devices.
        """
        for gpu in self.gpus:
            if gpu.mig_devices:
                raise ValueError(
                    f"server {self.name}: {gpu.name} must be whole, got one divided into the MIG "
                    f"devices {', '.join(gpu.mig_devices)} (nvidia-smi -i {gpu.number} -mig 0 "
                    "makes it whole)"
                )
        return self

    @cached_property
    def device_names(self) -> tuple[str, ...]:
        """Labels of the rows of `tokens`."""
        return (*(gpu.name for gpu in self.gpus), *(nic.name for nic in self.nics))

    def part(self, places: Sequence[int]) -> "Server":
        """Server of some of the GPUs, by their places and in that order, without network cards."""
        return Server(
            name=self.name,
            gpus=tuple(self.gpus[place] for place in places),
            tokens=tuple(tuple(self.tokens[one][other] for other in places) for one in places),
            numa_nodes=self.numa_nodes,
        )

    def renumbered(self, places: Sequence[int]) -> "Server":
        """Server with all of the GPUs in another order, by their places here; cards stay."""
        order = [*places, *range(self.num_gpus, len(self.tokens))]
        return replace(
            self,
            gpus=tuple(self.gpus[place] for place in places),
            tokens=tuple(tuple(self.tokens[one][other] for other in order) for one in order),
        )

    @cached_property
    def gpu_tokens(self) -> tuple[tuple[str, ...], ...]:
        """Tokens of every two GPUs."""
        count = self.num_gpus
        return tuple(row[:count] for row in self.tokens[:count])

    @cached_property
    def nvlinks(self) -> tuple[tuple[int, ...], ...]:
        """Counts of NVLinks of every two GPUs; 0 on the diagonal."""
        return tuple(tuple(num_nvlinks(token) for token in row) for row in self.gpu_tokens)

    @cached_property
    def nvlink_components(self) -> tuple[tuple[int, ...], ...]:
        """Places of GPUs that reach each other over NVLinks, over others too; each set in order."""
        component = list(range(self.num_gpus))
        for one, row in enumerate(self.nvlinks):
            for other in range(one):
                if row[other] and component[one] != component[other]:
                    joined, old = sorted((component[one], component[other]))
                    component = [joined if each == old else each for each in component]
        return tuple(
            tuple(gpu for gpu, own in enumerate(component) if own == first)
            for first in sorted(set(component))
        )

    def nearest_nics(self, gpu: int) -> tuple[Relation, tuple[Nic, ...]] | None:
        """Relation of the GPU at a place to the cards closest to it, and those; None without any.

        Examples
        --------
        >>> server = Server(
        ...     name="s",
        ...     gpus=(Gpu(number=0),),
        ...     nics=(Nic(name="NIC0"), Nic(name="NIC1")),
        ...     tokens=(("X", "SYS", "PXB"), ("SYS", "X", "SYS"), ("PXB", "SYS", "X")),
        ... )
        >>> server.nearest_nics(0)[0]
        'PXB'
        """
        if not self.nics:
            return None
        distances = [distance(token) for token in self.tokens[gpu][self.num_gpus :]]
        least = min(distances)
        near = zip(self.nics, distances, strict=True)
        return RELATIONS[least], tuple(nic for nic, far in near if far == least)

    @cached_property
    def near_nics(self) -> tuple[Nic, ...]:
        """Cards that are nearest to one of the GPUs; the rest are for storage and management."""
        near = (self.nearest_nics(gpu) for gpu in range(self.num_gpus))
        cards = (card for each in near if each is not None for card in each[1])
        return tuple(dict.fromkeys(cards))

    @cached_property
    def nic_shares(self) -> np.ndarray:
        """Part that the GPUs of a set get, when all of them send, of an even share of all cards.

        By the set's bits, the places of its GPUs, (2**n,). A GPU spreads its messages over the
        cards nearest to it and sends at the pace of one card at most; even is the number of near
        cards over that of the GPUs, at most 1. The slowest GPU of the set counts.

        Examples
        --------
        Two GPUs at each of two cards; two at one card get half of what two at two cards get.

        >>> rows = (
        ...     ("X", "SYS", "SYS", "SYS", "PIX", "SYS"), ("SYS", "X", "SYS", "SYS", "PIX", "SYS"),
        ...     ("SYS", "SYS", "X", "SYS", "SYS", "PIX"), ("SYS", "SYS", "SYS", "X", "SYS", "PIX"),
        ...     ("PIX", "PIX", "SYS", "SYS", "X", "SYS"), ("SYS", "SYS", "PIX", "PIX", "SYS", "X"),
        ... )
        >>> gpus = tuple(Gpu(number=each) for each in range(4))
        >>> server = Server(name="s", gpus=gpus, nics=(Nic(name="a"), Nic(name="b")), tokens=rows)
        >>> server.nic_shares[[0b0001, 0b0011, 0b0101, 0b1111]]
        array([1. , 0.5, 1. , 1. ])
        """
        cards = self.near_nics
        sets = np.arange(1 << self.num_gpus)[:, np.newaxis] >> np.arange(self.num_gpus) & 1
        if not cards:
            return np.ones(len(sets))
        near = np.zeros((self.num_gpus, len(cards)))
        for gpu in range(self.num_gpus):
            _, own = self.nearest_nics(gpu) or ("SYS", ())
            near[gpu, [cards.index(card) for card in own]] = 1.0 / len(own)
        fullest = np.maximum(1.0, (sets @ near).max(axis=1))
        senders = np.maximum(1, sets.sum(axis=1))
        return np.asarray(1.0 / fullest / np.minimum(1.0, len(cards) / senders))
