"""Book of a cluster's GPUs: who holds which, and which are promised to pods of a gang."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agents.devices.k8s.node_fit import NodeFit
from des.devices.cluster import Cluster
from des.devices.k8s.pods import GangKey, PodAsk
from des.devices.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGpus:
    """A node of the cluster.

    Attributes
    ----------
    server
        Its devices; None for a node without GPUs.
    no_server_reason
        Reason against the node where it has no server.
    resource
        Extended resource under which they are offered; None where the state does not say it.
    free
        Numbers of the GPUs that nothing outside the book has taken.
    """

    name: str
    server: Server | None = None
    no_server_reason: str = "has no GPUs"
    resource: str | None = None
    free: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        known = () if self.server is None else tuple(gpu.number for gpu in self.server.gpus)
        for number in self.free:
            if number not in known:
                raise ValueError(
                    f"node {self.name}: free must be numbers of its GPUs, "
                    f"{', '.join(map(str, known)) or 'none'}; got {number}"
                )
        if len(set(self.free)) < len(self.free):
            raise ValueError(f"node {self.name}: free must name each GPU once, got {self.free}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """GPUs that a pod holds; ``since_s`` is the time of the binding. [s]"""

    uid: str
    namespace: str
    name: str
    node: str
    gpus: tuple[int, ...]
    gang: GangKey | None = None
    since_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GangSlot:
    """GPUs of a node that are promised to some pod of a gang.

    Attributes
    ----------
    asks, policy
        Demand that the GPUs were chosen for; pods with another one do not take the slot.
    """

    node: str
    fit: NodeFit
    asks: tuple[tuple[str, int], ...]
    policy: str

    def is_for(self, ask: PodAsk) -> bool:
        """Tell whether a pod may take the slot."""
        return self.asks == ask.asks and self.policy == ask.policy


@dataclass(slots=True, kw_only=True)
class Promise:
    """Slots of a gang that no pod has taken yet, until a deadline. [s]"""

    deadline_s: float
    slots: list[GangSlot]

    def slots_for(self, ask: PodAsk) -> list[GangSlot]:
        """Slots that a pod may take."""
        return [slot for slot in self.slots if slot.is_for(ask)]

    def nodes_for(self, ask: PodAsk) -> frozenset[str]:
        """Names of the nodes with slots that a pod may take."""
        return frozenset(slot.node for slot in self.slots_for(ask))


@dataclass(slots=True, kw_only=True)
class GpuBook:
    """GPUs of all nodes, those that pods hold, and those promised to gangs.

    Every change raises ``version``, other nodes ``nodes_version`` as well; what is computed from
    the book is kept by them.

    Attributes
    ----------
    cluster
        Nodes with their places in the network.
    num_expired
        Promises that ended at their deadline.
    news_on
        A node with GPUs that are held or promised no more, or that a pod of a gang is nominated to,
        until someone has told the pods that wait.
    """

    nodes: Mapping[str, NodeGpus] = field(default_factory=dict)
    cluster: Cluster | None = None
    version: int = 0
    nodes_version: int = 0
    num_expired: int = 0
    news_on: str | None = None
    grants: dict[str, Grant] = field(default_factory=dict)
    promises: dict[GangKey, Promise] = field(default_factory=dict)
    _free: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _of_node: dict[str, dict[str, Grant]] = field(default_factory=dict)
    _claimed: dict[str, tuple[GangSlot, float]] = field(default_factory=dict)

    @property
    def servers(self) -> tuple[Server, ...]:
        """Distinct servers of the nodes."""
        found = {id(node.server): node.server for node in self.nodes.values() if node.server}
        return tuple(found.values())

    def replace_nodes(self, nodes: Iterable[NodeGpus], cluster: Cluster | None) -> None:
        """Take other nodes; promises on GPUs that are gone or taken are given up."""
        self.nodes = {node.name: node for node in nodes}
        self.cluster = cluster
        self.nodes_version += 1
        self._changed(None)
        self._keep_promises()

    def free(self, node: str) -> tuple[int, ...]:
        """Numbers of a node's GPUs that are neither held nor promised."""
        found = self._free.get(node)
        if found is None:
            promised = {gpu for slot in self._slots(node) for gpu in slot.fit.gpus}
            found = tuple(gpu for gpu in self.not_held(node) if gpu not in promised)
            self._free[node] = found
        return found

    def not_held(self, node: str) -> tuple[int, ...]:
        """Numbers of a node's GPUs that no pod holds, promised ones included."""
        held = {gpu for grant in self._of_node.get(node, {}).values() for gpu in grant.gpus}
        return tuple(gpu for gpu in self.nodes[node].free if gpu not in held)

    def bound(self, gang: GangKey) -> list[Grant]:
        """GPUs of a gang's pods that hold some."""
        return [grant for grant in self.grants.values() if grant.gang == gang]

    def slots_of(self, ask: PodAsk) -> list[GangSlot]:
        """Slots promised to a pod's gang that the pod may take."""
        promise = None if ask.gang_key is None else self.promises.get(ask.gang_key)
        return [] if promise is None else promise.slots_for(ask)

    def grant(self, grant: Grant) -> None:
        """Enter a pod's GPUs, in place of those that it held before."""
        self.release(grant.uid)
        self.grants[grant.uid] = grant
        self._of_node.setdefault(grant.node, {})[grant.uid] = grant
        self._changed(grant.node)

    def release(self, uid: str) -> bool:
        """Take back a pod's GPUs; tell whether it held any."""
        old = self.grants.pop(uid, None)
        self._claimed.pop(uid, None)
        if old is None:
            return False
        del self._of_node[old.node][uid]
        self._changed(old.node)
        return True

    def enter_outside(self, grant: Grant) -> None:
        """Enter GPUs that a pod got elsewhere; promises on them are given up."""
        if self.grants.get(grant.uid) != grant:
            self.grant(grant)
            self._keep_promises()

    def promise(self, gang: GangKey, promise: Promise) -> None:
        """Promise slots to a gang, in place of those that it had."""
        self.withdraw(gang)
        if promise.slots:
            self.promises[gang] = promise
            self._changed(None)

    def withdraw(self, gang: GangKey) -> None:
        """Take back what is promised to a gang, to promise it again."""
        if self.promises.pop(gang, None) is not None:
            self._changed(None)

    def give_up(self, gang: GangKey) -> None:
        """Give up what is promised to a gang, for others."""
        old = self.promises[gang]
        self.withdraw(gang)
        self.note_given_up(old)

    def note_given_up(self, old: Promise) -> None:
        """Note a node with GPUs of a former promise that are free now."""
        known = (slot for slot in old.slots if slot.node in self.nodes)
        nodes = (slot.node for slot in known if set(slot.fit.gpus) & {*self.free(slot.node)})
        self.news_on = next(nodes, self.news_on)

    def claim(self, ask: PodAsk, node: str, now_s: float) -> Grant | None:
        """Give a pod of a gang a slot on a node; None if there is none for it."""
        slot = next((slot for slot in self.slots_of(ask) if slot.node == node), None)
        if slot is None or ask.gang_key is None:
            return None
        promise = self.promises[ask.gang_key]
        promise.slots.remove(slot)
        if not promise.slots:
            del self.promises[ask.gang_key]
        grant = granted(ask, node, slot.fit.gpus, now_s)
        self.grant(grant)
        self._claimed[ask.uid] = slot, promise.deadline_s
        return grant

    def give_back(self, ask: PodAsk, now_s: float) -> None:
        """Take GPUs back from a pod that was not bound; a slot goes back to its gang in time."""
        slot, deadline_s = self._claimed.get(ask.uid, (None, now_s))
        self.release(ask.uid)
        if slot is None or ask.gang_key is None or deadline_s <= now_s:
            return
        rest = self.promises.get(ask.gang_key)
        slots = [*(rest.slots if rest else ()), slot]
        self.promise(ask.gang_key, Promise(deadline_s=deadline_s, slots=slots))

    def expire(self, now_s: float) -> int:
        """Give up promises whose deadline has come; returns how many."""
        late = [gang for gang, each in self.promises.items() if each.deadline_s <= now_s]
        for gang in late:
            self.give_up(gang)
        self.num_expired += len(late)
        return len(late)

    def _slots(self, node: str) -> Iterator[GangSlot]:
        for promise in self.promises.values():
            yield from (slot for slot in promise.slots if slot.node == node)

    def _keep_promises(self) -> None:
        """Give up promises on GPUs that are not there, or that pods hold."""
        for gang, promise in tuple(self.promises.items()):
            for slot in promise.slots:
                left = self.not_held(slot.node) if slot.node in self.nodes else ()
                if not set(slot.fit.gpus) <= set(left):
                    self.give_up(gang)
                    break

    def _changed(self, node: str | None) -> None:
        self.version += 1
        if node is None:
            self._free.clear()
        else:
            self._free.pop(node, None)


def granted(ask: PodAsk, node: str, gpus: tuple[int, ...], now_s: float) -> Grant:
    """Grant of GPUs of a node to a pod."""
    return Grant(
        uid=ask.uid,
        namespace=ask.namespace,
        name=ask.name,
        node=node,
        gpus=gpus,
        gang=ask.gang_key,
        since_s=now_s,
    )
