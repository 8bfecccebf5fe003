"""Nodes of a cluster: GPUs, where they are, and when nodes come and go."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from des.base.checks import require_count, require_non_negative, require_one_of

ChangeKind = Literal["join", "drain", "fail", "leave"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlace:
    """A node: its GPUs and the units that hold it.

    ``units`` gives (level, unit) from coarse to fine, without the node itself.
    """

    name: str
    num_gpus: int
    domain: str = ""
    gpu_type: str = ""
    units: tuple[tuple[str, str], ...] = ()
    joins_at_s: float = 0.0

    def __post_init__(self) -> None:
        owner = f"node {self.name}"
        require_count(owner, "num_gpus", self.num_gpus, 4096)
        require_non_negative(owner, "joins_at_s", self.joins_at_s)

    def unit(self, level: str) -> str:
        """Name of the unit of a level that holds the node; none if there is none."""
        if level == "node":
            return self.name
        if level == "domain":
            return self.domain
        return dict(self.units).get(level, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """A change of a node at a time.

    ``drain``: it takes no more jobs; ``leave``: its jobs are suspended and it is gone; ``fail``:
    its jobs lose what they did since their last checkpoint; ``join``: it is there (again).
    """

    time_s: float
    node: int
    kind: ChangeKind

    def __post_init__(self) -> None:
        require_non_negative(f"change of node {self.node}", "time_s", self.time_s)
        require_one_of(f"change of node {self.node}", "kind", self.kind, get_args(ChangeKind))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSet:
    """All nodes that a cluster ever has, in the order in which their GPUs are numbered."""

    nodes: tuple[ClusterPlace, ...]

    def __post_init__(self) -> None:
        if not self.nodes:
            raise ValueError("nodes: must be at least one, got none")
        names = [node.name for node in self.nodes]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"nodes: must have names of their own, got {twice!r} twice")

    @property
    def num_gpus(self) -> int:
        """GPUs of all nodes."""
        return sum(node.num_gpus for node in self.nodes)

    def level_units(self, level: str) -> dict[str, list[int]]:
        """Units of a level and the positions of their nodes.

        Raises
        ------
        ValueError
            If no node lies in a unit of this level.
        """
        found: dict[str, list[int]] = {}
        for position, node in enumerate(self.nodes):
            unit = node.unit(level)
            if unit:
                found.setdefault(unit, []).append(position)
        if not found:
            known = dict.fromkeys(name for node in self.nodes for name, _ in node.units)
            allowed = ", ".join(("node", "domain", *known))
            raise ValueError(f"nodes: level must be one of {allowed}; got {level!r}")
        return found

    @classmethod
    def equal(
        cls, num_nodes: int, gpus_per_node: int, *, nodes_per_rack: int = 0, num_domains: int = 1
    ) -> "NodeSet":
        """Make equal nodes, optionally in racks, spread evenly over domains.

        Examples
        --------
        >>> NodeSet.equal(32, 4).num_gpus
        128
        """
        require_count("nodes", "num_nodes", num_nodes, 10**6)
        require_count("nodes", "num_domains", num_domains, num_nodes)
        return cls(
            nodes=tuple(
                ClusterPlace(
                    name=f"n{number}",
                    num_gpus=gpus_per_node,
                    domain=f"d{number * num_domains // num_nodes}",
                    units=(("rack", f"r{number // nodes_per_rack}"),) if nodes_per_rack else (),
                )
                for number in range(num_nodes)
            )
        )


def check_changes(nodes: NodeSet, changes: Sequence[NodeChange]) -> None:
    """Refuse changes of nodes that are not there.

    Raises
    ------
    ValueError
        If a position is none of a node.
    """
    for change in changes:
        if not 0 <= change.node < len(nodes.nodes):
            raise ValueError(
                f"change at {change.time_s:g} s: node must be a position from 0 to "
                f"{len(nodes.nodes) - 1}, got {change.node}"
            )
