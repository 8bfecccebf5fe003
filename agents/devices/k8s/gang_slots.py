"""Slots for the pods of a gang: largest pods first, on the fewest nodes close to each other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from agents.devices.k8s.book import GangSlot
from agents.devices.k8s.decider import Decider
from agents.devices.k8s.node_fit import NoFit
from agents.devices.node_request import NodeRequest
from agents.devices.node_sets import choose_nodes
from des.devices.k8s.pods import PodAsk


def gang_slots(
    decider: Decider,
    members: Sequence[PodAsk],
    nodes: Sequence[str],
    freed: Mapping[str, Iterable[int]] = MappingProxyType({}),
) -> list[GangSlot] | None:
    """Choose slots for pods, one each; None where they are not found.

    ``freed`` are GPUs of nodes that count as free beside those that are.

    Pods of equal demand get slots wherever there are enough. Of unequal ones the largest come
    first, each on the first node that has room, and once more on the fullest one: that finds room
    for numbers of GPUs that divide each other, and may miss it for others. Pods that keep others
    like them off their node get a node each, on none that such a sibling has.
    """
    nodes = [each for each in nodes if not _is_held(decider, members, each)]
    order = sorted(members, key=lambda each: -each.num_gpus)
    free = {node: _free(decider, node, freed.get(node, ())) for node in dict.fromkeys(nodes)}
    room = {node: _room(decider, order, node, own) for node, own in free.items()}
    room = {node: gpus for node, gpus in room.items() if gpus}
    total = sum(each.num_gpus for each in members)
    is_even = len({(each.asks, each.policy) for each in members}) == 1
    if is_even and sum(room.values()) < total:
        return None
    for names in _node_sets(decider, order[0], room, total, is_even=is_even):
        slots = _pack(decider, order, {name: free[name] for name in names})
        if slots is not None:
            return slots
    return None


def _free(decider: Decider, node: str, freed: Iterable[int]) -> tuple[int, ...]:
    """GPUs of a node that are free, or count as such; none of one that is not known."""
    if node not in decider.book.nodes:
        return ()
    left = {*decider.book.free(node), *freed}
    return tuple(gpu for gpu in decider.book.nodes[node].free if gpu in left)


def _room(decider: Decider, order: Sequence[PodAsk], node: str, free: tuple[int, ...]) -> int:
    """GPUs that pods get on a node alone, the largest first."""
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
        if each.is_apart:
            break
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


def _pack(
    decider: Decider, order: Sequence[PodAsk], free: dict[str, tuple[int, ...]]
) -> list[GangSlot] | None:
    """Slots on free GPUs of nodes, filled in their order; None where a pod finds no room."""
    names = list(free)
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
        left = () if each.is_apart else free[name]
        free[name] = tuple(gpu for gpu in left if gpu not in fit.gpus)
    return slots


def _is_held(decider: Decider, members: Sequence[PodAsk], node: str) -> bool:
    """Whether a sibling of pods that keep apart has GPUs of a node."""
    gang = members[0].gang_key if members and members[0].is_apart else None
    if gang is None:
        return False
    return any(each.node == node for each in decider.book.bound(gang))
