"""State of a cluster as a source knows it, and its entry into the book."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agents.devices.k8s.book import GpuBook, Grant, NodeGpus
from des.devices.cluster import Cluster
from des.devices.k8s.pods import GangKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """Nodes with their GPUs, their places in the network, pods that hold GPUs, sizes of gangs."""

    nodes: tuple[NodeGpus, ...]
    cluster: Cluster
    grants: tuple[Grant, ...] = ()
    gang_sizes: Mapping[GangKey, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [node.name for node in self.nodes]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"state: names of nodes must differ, got {twice} twice")
        free = {node.name: set(node.free) for node in self.nodes}
        seen: set[str] = set()
        for grant in self.grants:
            if grant.node not in free:
                raise ValueError(
                    f"pod {grant.uid}: node must be one of the state's, got {grant.node}"
                )
            if grant.uid in seen:
                raise ValueError(f"pod {grant.uid}: must be given once, got it twice")
            seen.add(grant.uid)
            if not set(grant.gpus) <= free[grant.node]:
                raise ValueError(
                    f"pod {grant.uid}: gpus must be GPUs of {grant.node} that no other pod holds, "
                    f"got {list(grant.gpus)}"
                )
            free[grant.node] -= set(grant.gpus)


def enter_state(book: GpuBook, state: ClusterState, known_until_s: float) -> None:
    """Replace nodes and pods of a book by those of a state.

    GPUs that the extender gave away after the time that the state knows stay given away, where they
    are still free; older ones that the state does not have are free again. Promises whose GPUs are
    gone are given up.
    """
    before = dict(book.grants)
    for uid in before:
        book.release(uid)
    book.replace_nodes(state.nodes, state.cluster)
    for grant in state.grants:
        old = before.get(grant.uid)
        book.enter_outside(replace(grant, gang=grant.gang or (old.gang if old else None)))
    for uid, grant in before.items():
        if grant.since_s <= known_until_s:
            continue
        is_free = grant.node in book.nodes and set(grant.gpus) <= set(book.not_held(grant.node))
        if uid not in book.grants and is_free:
            book.enter_outside(grant)
