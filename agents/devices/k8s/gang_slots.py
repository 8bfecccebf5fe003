"""Slots for the pods of a gang: largest pods first, on the fewest nodes close to each other."""

from collections.abc import Iterator, Mapping, Sequence

from agents.devices.k8s.book import GangSlot
from agents.devices.k8s.decider import Decider
from agents.devices.k8s.node_fit import NoFit
from agents.devices.node_request import NodeRequest
from agents.devices.node_sets import choose_nodes
from des.devices.k8s.pods import PodAsk


def gang_slots(
    decider: Decider, members: Sequence[PodAsk], nodes: Sequence[str]
) -> list[GangSlot] | None:
    """Choose slots for pods, one each; None where they are not found.

    Pods of equal demand get slots wherever there are enough. Of unequal ones the largest come
    first, each on the first node that has room, and once more on the fullest one: that finds room
    for numbers of GPUs that divide each other, and may miss it for others.
    """
    order = sorted(members, key=lambda each: -each.num_gpus)
    room = {node: _room(decider, order, node) for node in dict.fromkeys(nodes)}
    room = {node: gpus for node, gpus in room.items() if gpus}
    total = sum(each.num_gpus for each in members)
    is_even = len({(each.asks, each.policy) for each in members}) == 1
    if is_even and sum(room.values()) < total:
        return None
    for names in _node_sets(decider, order[0], room, total, is_even=is_even):
        slots = _packed(decider, order, names)
        if slots is not None:
            return slots
    return None


def _room(decider: Decider, order: Sequence[PodAsk], node: str) -> int:
    """GPUs that pods get on a node alone, the largest first."""
    if node not in decider.book.nodes:
        return 0
    free = decider.book.free(node)
    total = 0
    refused: set[tuple[object, str]] = set()
    for each in order:
        if (each.asks, each.policy) in refused:
            continue
        fit = decider.fit(each, node, free)
        if isinstance(fit, NoFit):
            refused.add((each.asks, each.policy))
            continue
        total += len(fit.gpus)
        free = tuple(gpu for gpu in free if gpu not in fit.gpus)
    return total


def _node_sets(
    decider: Decider, first: PodAsk, room: Mapping[str, int], total: int, *, is_even: bool
) -> Iterator[Sequence[str]]:
    """Sets of nodes to try, in the order in which to fill them.

    For the most GPUs that a node can give: as few such nodes as can hold all, close to each other,
    for which those of the best score are preferred; then one more. Then all nodes, those with most
    room first; for pods of unequal demand also those with least room first.
    """
    cluster = decider.book.cluster
    shares = decider.shares(first, tuple(room))
    score = dict(zip(room, (share or 0.0 for share in shares), strict=True))
    for level in sorted(set(room.values()), reverse=True):
        enough = [node for node, gpus in room.items() if gpus >= level]
        best = max(score[node] for node in enough)
        wished = first.preferred_nodes
        preferred = [n for n in enough if (n in wished if wished else score[n] == best)]
        fewest = -(-total // level)
        for count in range(fewest, fewest + (1 if is_even else 2)):
            if cluster is not None and count <= len(enough):
                request = NodeRequest(count=count, preferred_nodes=tuple(preferred))
                yield choose_nodes(cluster, enough, request).nodes
    yield sorted(room, key=lambda node: (-room[node], -score[node]))
    if not is_even:
        yield sorted(room, key=lambda node: (room[node], -score[node]))


def _packed(
    decider: Decider, order: Sequence[PodAsk], names: Sequence[str]
) -> list[GangSlot] | None:
    """Slots on nodes, filled in their order; None where a pod finds no room."""
    free = {name: decider.book.free(name) for name in names}
    first_place: dict[tuple[object, str], int] = {}  # nodes before it have no room for the demand
    slots: list[GangSlot] = []
    for each in order:
        place = first_place.get((each.asks, each.policy), 0)
        while place < len(names):
            fit = decider.fit(each, names[place], free[names[place]])
            if not isinstance(fit, NoFit):
                break
            place += 1
        else:
            return None
        first_place[each.asks, each.policy] = place
        name = names[place]
        slots.append(GangSlot(node=name, fit=fit, asks=each.asks, policy=each.policy))
        free[name] = tuple(gpu for gpu in free[name] if gpu not in fit.gpus)
    return slots
