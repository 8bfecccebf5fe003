"""Gangs: slots for all pods of a gang at once, on few nodes that are close to each other."""

from collections.abc import Sequence

from agents.devices.k8s.book import GangSlot, Promise
from agents.devices.k8s.decider import Decider
from agents.devices.k8s.node_fit import NodeFit, NoFit
from agents.devices.node_request import NodeRequest
from agents.devices.node_sets import choose_nodes
from des.devices.k8s.pods import PodAsk


def gang_nodes(
    decider: Decider, ask: PodAsk, nodes: Sequence[str], now_s: float
) -> tuple[frozenset[str], str] | None:
    """Nodes on which a pod may take a slot of its gang, and the reason against all others.

    The first pod of a gang has slots promised for all pods that are not bound yet, or none at all:
    a gang that does not fit as a whole is not begun. If none of the promised nodes is among the
    candidates any more, other slots are promised, up to the same deadline.

    Returns
    -------
    tuple or None
        None for a pod to be placed by itself: one without a gang, one that needs another number of
        GPUs than the promise is for, or one more than the gang has.
    """
    gang, book = ask.gang_key, decider.book
    if gang is None or ask.uid in book.grants:
        return None
    promise = book.promises.get(gang)
    if promise is not None and promise.num_gpus != ask.num_gpus:
        return None
    if promise is not None and promise.nodes & set(nodes):
        return promise.nodes, _elsewhere(gang[1], promise)
    missing = ask.gang_size - book.num_bound(gang)
    if missing < 1:
        return None
    deadline_s = now_s + decider.gang_timeout_s if promise is None else promise.deadline_s
    book.withdraw(gang)
    slots = _slots(decider, ask, nodes, missing)
    if slots is None:
        if promise is not None:
            book.promise(gang, promise)
        return frozenset(), (
            f"gang {gang[1]}: {missing} pods of {ask.num_gpus} GPUs do not fit on the candidates "
            "together"
        )
    promise = Promise(num_gpus=ask.num_gpus, deadline_s=deadline_s, slots=slots)
    book.promise(gang, promise)
    return promise.nodes, _elsewhere(gang[1], promise)


def _elsewhere(gang: str, promise: Promise) -> str:
    names = sorted(promise.nodes)
    shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
    return f"gang {gang} has GPUs promised on {shown}"


def _slots(
    decider: Decider, ask: PodAsk, nodes: Sequence[str], count: int
) -> list[GangSlot] | None:
    """Slots for a number of pods; None if there are not as many."""
    fits = {node: _fits_on(decider, ask, node, count) for node in dict.fromkeys(nodes)}
    able = {node: slots for node, slots in fits.items() if slots}
    if sum(map(len, able.values())) < count:
        return None
    chosen = _close_nodes(decider, ask, able, count)
    slots = [GangSlot(node=node, fit=fit) for node in chosen for fit in able[node]]
    return slots[:count]


def _fits_on(decider: Decider, ask: PodAsk, node: str, most: int) -> list[NodeFit]:
    """GPUs for one pod after the other on a node, until no more fits."""
    found: list[NodeFit] = []
    free = decider.book.free(node) if node in decider.book.nodes else ()
    while len(found) < most:
        fit = decider.fit(ask, node, free)
        if isinstance(fit, NoFit):
            break
        found.append(fit)
        free = tuple(gpu for gpu in free if gpu not in fit.gpus)
    return found


def _close_nodes(
    decider: Decider, ask: PodAsk, able: dict[str, list[NodeFit]], count: int
) -> list[str]:
    """Fewest nodes that hold all pods, close to each other, the best ones first.

    For the most pods that each node can hold: a set of `agents.devices.node_sets.choose_nodes`, for
    which the nodes of the best score are preferred. If no number of pods fits evenly, the nodes
    with room for most pods.
    """
    cluster = decider.book.cluster
    shares = decider.shares(ask, tuple(able))
    score = dict(zip(able, (share or 0.0 for share in shares), strict=True))
    for each in sorted({len(slots) for slots in able.values()}, reverse=True):
        num_nodes = -(-count // each)
        enough = [node for node, slots in able.items() if len(slots) >= each]
        if cluster is None or len(enough) < num_nodes:
            continue
        best = max(score[node] for node in enough)
        request = NodeRequest(
            count=num_nodes,
            preferred_nodes=tuple(
                node
                for node in enough
                if (node in ask.preferred_nodes if ask.preferred_nodes else score[node] == best)
            ),
        )
        return list(choose_nodes(cluster, enough, request).nodes)
    return sorted(able, key=lambda node: (-len(able[node]), -score[node]))
