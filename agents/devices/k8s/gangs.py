"""Gangs: slots for all pods of a gang at once, on few nodes that are close to each other."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from agents.devices.k8s.book import GangSlot, Promise
from agents.devices.k8s.decider import Decider
from agents.devices.k8s.gang_slots import gang_slots
from des.devices.k8s.pods import PodAsk


def gang_nodes(
    decider: Decider, ask: PodAsk, nodes: Sequence[str], now_s: float
) -> tuple[frozenset[str], str] | None:
    """Nodes on which a pod may take a slot of its gang, and the reason against all others.

    The first pod of a gang has slots promised for all pods that are not bound yet, or none at all:
    a gang that does not fit as a whole is not begun. If no slot is for the pod, slots are added, or
    all are promised again; so they are if none of its nodes is among the candidates any more. The
    deadline stays the same. Siblings may have the nodes that they are nominated to as well, which
    kube-scheduler does not send: to this pod they count as taken.

    Returns
    -------
    tuple or None
        None for a pod to be placed by itself: one without a gang, or one more than the gang has.
    """
    gang, book = ask.gang_key, decider.book
    if gang is None or ask.uid in book.grants:
        return None
    promise = book.promises.get(gang)
    own = () if promise is None else promise.nodes_for(ask)
    if own and not own.isdisjoint(nodes):
        return own, _elsewhere(gang[1], own)
    members = _members(decider, ask, now_s)
    if members is None:
        return None
    nominated = [each.nominated for each in members if each.nominated and each is not ask]
    nodes = [*nodes, *nominated]
    deadline_s = now_s + decider.gang_timeout_s if promise is None else promise.deadline_s
    slots = None
    if promise is not None and not own:  # siblings that were seen keep their slots
        slots = _add(decider, promise, members, nodes)
    if slots is None:
        book.withdraw(gang)
        slots = gang_slots(decider, members, nodes)
    if slots is None:
        if promise is not None:
            book.promise(gang, promise)
        return frozenset(), f"gang {gang[1]}: {_demand(members)} do not fit on the candidates"
    new = Promise(deadline_s=deadline_s, slots=slots)
    book.promise(gang, new)
    if promise is not None:
        book.note_given_up(promise)
    elif nominated:
        book.news_on = nominated[0]  # siblings were refused before
    return new.nodes_for(ask), _elsewhere(gang[1], new.nodes_for(ask))


def gang_fits(
    decider: Decider, ask: PodAsk, freed: Mapping[str, Iterable[int]], now_s: float
) -> bool:
    """Tell whether all pods of a pod's gang that are not bound fit once GPUs of nodes are free.

    What is promised to the gang is free for it. True for a pod to be placed by itself.
    """
    members = _members(decider, ask, now_s)
    if members is None:
        return True
    promise = None if ask.gang_key is None else decider.book.promises.get(ask.gang_key)
    more = {node: set(gpus) for node, gpus in freed.items()}
    for slot in () if promise is None else promise.slots:
        more.setdefault(slot.node, set()).update(slot.fit.gpus)
    return gang_slots(decider, members, tuple(decider.book.nodes), more) is not None


def _add(
    decider: Decider, promise: Promise, members: Sequence[PodAsk], nodes: Sequence[str]
) -> list[GangSlot] | None:
    """Slots of a promise that are for members, and further ones for the others; None without."""
    left, kept, others = list(promise.slots), [], []
    for each in members:
        slot = next((slot for slot in left if slot.is_for(each)), None)
        if slot is None:
            others.append(each)
        else:
            left.remove(slot)
            kept.append(slot)
    gang = members[0].gang_key
    assert gang is not None
    decider.book.promise(gang, Promise(deadline_s=promise.deadline_s, slots=kept))
    taken = {slot.node for slot in kept} if others and others[0].is_apart else set()
    more = gang_slots(decider, others, [node for node in nodes if node not in taken])
    return None if more is None else [*kept, *more]


def _elsewhere(gang: str, nodes: frozenset[str]) -> str:
    names = sorted(nodes)
    shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
    return f"gang {gang} has GPUs promised on {shown}"


def _demand(members: Sequence[PodAsk]) -> str:
    """Pods by their GPUs, in words: ``1 pod of 8 GPUs and 3 pods of 4 GPUs together``."""
    counts = Counter(each.num_gpus for each in members)
    parts = [
        f"{count} {'pod' if count == 1 else 'pods'} of {gpus} GPUs"
        for gpus, count in sorted(counts.items(), reverse=True)
    ]
    return " and ".join(parts) + " together"


def _members(decider: Decider, ask: PodAsk, now_s: float) -> list[PodAsk] | None:
    """Pods of a gang that hold no GPUs yet, this one first; None for one more than the gang has.

    Siblings have the demands that the pod's annotation gives, else their own where they have been
    seen; the others are taken to be like this one.
    """
    book, gang = decider.book, ask.gang_key
    size = decider.waiting.gang_size(ask)
    if gang is None or size < 2:
        return None
    bound = book.bound(gang)
    known = [pod for pod in decider.waiting.siblings(ask, now_s) if pod.uid not in book.grants]
    if ask.gang_gpus:
        left = Counter(ask.gang_gpus) - Counter(len(grant.gpus) for grant in bound)
        if not left[ask.num_gpus]:
            return None
        left[ask.num_gpus] -= 1
        return [ask, *(_sibling(ask, count, known) for count in left.elements())]
    missing = size - len(bound)
    if missing < 1:
        return None
    known = known[: missing - 1]
    return [ask, *known, *([ask] * (missing - 1 - len(known)))]


def _sibling(ask: PodAsk, count: int, known: list[PodAsk]) -> PodAsk:
    """Demand of a sibling with a number of GPUs: of one that was seen, else like this pod's."""
    for place, pod in enumerate(known):
        if pod.num_gpus == count:
            return known.pop(place)
    return ask.with_gpus(count)
