"""Requests for sets of nodes, and the sets that answer them."""

from dataclasses import dataclass

from des.base.checks import require_count


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequest:
    """A request for nodes.

    Attributes
    ----------
    count
        Number of nodes.
    required, preferred
        Level of which one unit must hold all nodes, or should; None without such a request.
    preferred_nodes
        Names of nodes to take first.
    data
        Names of nodes and units that hold the data; a node among or below them is near.
    spread
        Levels, and how many nodes of the set each of their units may have at most.
    apart, others
        Level whose units with nodes of other jobs are avoided, and the names of those nodes.
    """

    count: int
    required: str | None = None
    preferred: str | None = None
    preferred_nodes: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    spread: tuple[tuple[str, int], ...] = ()
    apart: str | None = None
    others: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_count("node set", "count", self.count)
        for level, limit in self.spread:
            require_count("node set", f"spread over {level}", limit)
        if (self.apart is None) != (not self.others):
            raise ValueError(
                "node set: apart must be given with the nodes of other jobs, "
                f"got {self.apart!r} and {len(self.others)} nodes"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenNodes:
    """Chosen nodes, in the order of the tree.

    Attributes
    ----------
    level, unit
        Finest level of which one unit holds all of them, and that unit; ``any`` and ``cluster``
        where none does.
    num_units
        Units that the nodes are in, by level, coarse to fine.
    near_fraction
        Share of nodes near the data; None without data.
    num_preferred
        Preferred nodes among them.
    is_exact
        Whether no better set exists in the order of the module.
    """

    nodes: tuple[str, ...]
    level: str
    unit: str
    num_units: tuple[tuple[str, int], ...]
    near_fraction: float | None
    num_preferred: int
    is_exact: bool
