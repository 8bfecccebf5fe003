"""Fits and scores of pods on the nodes of a book, kept by its version."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.devices.gpu_placement import PAYLOAD_BYTES
from agents.devices.k8s.book import GpuBook
from agents.devices.k8s.node_fit import LATENCY_BYTES, NodeFit, NoFit, fit_on_server, times_range
from agents.devices.k8s.node_scores import score_share, whole_scores
from agents.devices.k8s.score_weights import ScoreWeights
from agents.devices.k8s.waiting import WaitingPods
from des.base.checks import require_positive
from des.devices.k8s.pods import PodAsk, PodKeys, read_pod
from des.devices.server import Server

_MOST_KEPT, _MOST_SCORED = 20_000, 256
"""Fits and shares, and lists of scores kept."""

_NOTHING = NodeFit(
    gpus=(), all_reduce_s=0.0, latency_s=0.0, num_nodes=1, fragmentation_fraction=0.0
)

Priority = dict[str, str | int]
"""A ``HostPriority``: name of a node, and its score."""

_Signature = tuple[tuple[tuple[str, int], ...], str, tuple[str, ...]]


@dataclass(slots=True, kw_only=True)
class Decider:
    """Book of a cluster, and the settings by which pods are placed on it.

    Attributes
    ----------
    gang_timeout_s
        Time for which slots are promised to a gang. [s]
    waiting
        Pods of calls and of the API server that have no node yet.
    """

    book: GpuBook
    keys: PodKeys = field(default_factory=PodKeys)
    weights: ScoreWeights = field(default_factory=ScoreWeights)
    gang_timeout_s: float = 300.0
    waiting: WaitingPods = field(init=False)
    _fits: dict[tuple[int, tuple[int, ...], int, str], NodeFit | NoFit] = field(
        default_factory=dict
    )
    _servers: dict[int, Server] = field(default_factory=dict)
    _shares: dict[_Signature, dict[str, float | None]] = field(default_factory=dict)
    _scores: dict[tuple[_Signature, tuple[str, ...]], list[Priority]] = field(default_factory=dict)
    _times: dict[tuple[int, float], tuple[float, float] | None] = field(default_factory=dict)
    _of_fits: dict[tuple[int, bool], tuple[NodeFit, float]] = field(default_factory=dict)
    _version: int = -1
    _nodes_version: int = -1

    def __post_init__(self) -> None:
        require_positive("extender", "gang_timeout_s", self.gang_timeout_s)
        self.waiting = WaitingPods(sibling_timeout_s=self.gang_timeout_s)

    def remember(self, pod: object, now_s: float) -> PodAsk:
        """Read the pod of a call, and keep it for its bind call."""
        ask = read_pod(pod, self.keys)
        self.waiting.enter(ask, now_s)
        return ask

    def forget(self, uid: str) -> None:
        """Drop a pod that is gone: its request, what it holds, with the last its gang's promise."""
        self.waiting.forget(uid)
        held = self.book.grants.get(uid)
        if held is not None:
            self.book.release(uid)
            self.book.news_on = held.node  # kube-scheduler may have asked before this was known
        self.give_up_without_pods()

    def has_waiting(self) -> bool:
        """Tell whether any pod that was seen holds no GPUs."""
        return any(uid not in self.book.grants for uid in self.waiting)

    def give_up_without_pods(self) -> None:
        """Give up promises to gangs of which no pod is known."""
        for gang in tuple(self.book.promises):
            if not self.waiting.has_pods(gang) and not self.book.bound(gang):
                self.book.give_up(gang)

    def fit(self, ask: PodAsk, node: str, free: tuple[int, ...] | None = None) -> NodeFit | NoFit:
        """Best GPUs of a node for a pod among those free (default: by the book), or the reason."""
        if not ask.asks:
            return _NOTHING
        known = self.book.nodes.get(node)
        if known is None:
            return NoFit(reason="is not known to the extender", can_be_freed=False)
        if known.server is None:
            return NoFit(reason=known.no_server_reason, can_be_freed=False)
        if ask.resource is None or known.resource not in {None, ask.resource}:
            asked = " and ".join(name for name, _ in ask.asks)
            offered = known.resource or "one resource"
            return NoFit(reason=f"offers {offered}, the pod asks for {asked}", can_be_freed=False)
        own = self.book.free(node) if free is None else free
        return self._server_fit(known.server, own, ask.num_gpus, ask.policy)

    def _server_fit(
        self, server: Server, free: tuple[int, ...], num_gpus: int, policy: str
    ) -> NodeFit | NoFit:
        key = (id(server), free, num_gpus, policy)
        found = self._fits.get(key)
        if found is None:
            if len(self._fits) >= _MOST_KEPT:
                self._fits.clear()
                self._servers.clear()
            self._servers[id(server)] = server  # so that its id stays its own
            found = fit_on_server(server, free, num_gpus, policy)
            self._fits[key] = found
        return found

    def shares(self, ask: PodAsk, nodes: Sequence[str]) -> list[float | None]:
        """Scores of nodes in [0, 1]; None for a node that the pod does not fit on."""
        self._renew()
        slots = self._own_slots(ask)
        if slots is not None:
            return [
                None if node not in slots else self._share(ask, node, slots[node]) for node in nodes
            ]
        signature = (ask.asks, ask.policy, ask.preferred_nodes)
        kept = self._shares.setdefault(signature, {})
        if len(self._shares) > _MOST_KEPT or len(kept) > _MOST_KEPT:
            self._shares.clear()
            kept = {}
        found = []
        for node in nodes:
            if node not in kept:
                kept[node] = self._share(ask, node, self.fit(ask, node))
            found.append(kept[node])
        return found

    def priorities(self, ask: PodAsk, nodes: tuple[str, ...]) -> list[Priority]:
        """Nodes with whole scores from 0 to 10; the same list until the book changes."""
        self._renew()
        if ask.gang_key is not None:
            return self._new_priorities(ask, nodes)
        key = ((ask.asks, ask.policy, ask.preferred_nodes), nodes)
        found = self._scores.get(key)
        if found is None:
            if len(self._scores) >= _MOST_SCORED:
                self._scores.clear()
            found = self._new_priorities(ask, nodes)
            self._scores[key] = found
        return found

    def _new_priorities(self, ask: PodAsk, nodes: tuple[str, ...]) -> list[Priority]:
        scores = whole_scores(self.shares(ask, nodes))
        return [{"Host": name, "Score": score} for name, score in zip(nodes, scores, strict=True)]

    def _renew(self) -> None:
        """Drop what was computed from an older version of the book."""
        if self._version != self.book.version:
            self._shares.clear()
            self._scores.clear()
            self._version = self.book.version
        if self._nodes_version != self.book.nodes_version:
            self._times.clear()
            self._of_fits.clear()
            self._nodes_version = self.book.nodes_version

    def _share(self, ask: PodAsk, node: str, fit: NodeFit | NoFit) -> float | None:
        if isinstance(fit, NoFit):
            return None
        is_preferred = not ask.preferred_nodes or node in ask.preferred_nodes
        key = id(fit), is_preferred
        kept = self._of_fits.get(key)
        if kept is None:
            if len(self._of_fits) >= _MOST_KEPT:
                self._of_fits.clear()
            kept = fit, self._new_share(fit, is_preferred)  # with the fit, so that its id stays
            self._of_fits[key] = kept
        return kept[1]

    def _new_share(self, fit: NodeFit, is_preferred: bool) -> float:
        size, has_latency = len(fit.gpus), self.weights.latency > 0.0
        return score_share(
            fit,
            self._range(size, PAYLOAD_BYTES),
            is_preferred=is_preferred,
            weights=self.weights,
            latencies_s=self._range(size, LATENCY_BYTES) if has_latency else None,
        )

    def _range(self, size: int, payload_bytes: float) -> tuple[float, float] | None:
        """Range of times of sets of a size in the cluster, kept until nodes change."""
        key = size, payload_bytes
        if key not in self._times:
            found = times_range(self.book.servers, *key) if size else (0.0, 0.0)
            self._times[key] = found
        return self._times[key]

    def _own_slots(self, ask: PodAsk) -> dict[str, NodeFit] | None:
        """Slots promised to the pod's gang, by node; None where none is for it."""
        slots = [] if ask.uid in self.book.grants else self.book.slots_of(ask)
        return {slot.node: slot.fit for slot in reversed(slots)} or None
