"""State of the cluster from the API server: annotated nodes, pods, and sizes of gangs."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.devices.k8s.book import NodeGpus, granted
from agents.devices.k8s.decider import Decider
from agents.devices.k8s.node_fit import NodeFit
from des.devices.cluster import Cluster, ClusterNode
from des.devices.cluster_files.label_keys import known_keys
from des.devices.cluster_files.node_labels import LabelledNode, cluster_of_labels
from des.devices.k8s.gang_objects import GANG_OBJECTS, GangSizes
from des.devices.k8s.node_text import read_server_annotation
from des.devices.k8s.pods import FINISHED, PodAsk, read_pod
from des.devices.k8s.wire import wire_object, wire_text, wire_texts
from des.devices.server import Server

LOG = logging.getLogger("scenarios.k8s")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """Part of a node that the book needs; equal values need no new entry."""

    name: str
    labels: tuple[tuple[str, str], ...]
    annotation: str | None
    resource: str | None


@dataclass(slots=True, kw_only=True)
class ApiState:
    """Nodes and pods of the API server, entered into the book of a decider."""

    decider: Decider
    _nodes: dict[str, _Node] = field(default_factory=dict)
    _servers: dict[str, Server] = field(default_factory=dict)
    _gang_sizes: dict[str, dict[str, GangSizes]] = field(default_factory=dict)

    def replace_nodes(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Take the list of all nodes."""
        self._nodes = {node.name: node for node in map(self._read, items) if node is not None}
        self._enter_nodes()

    def change_node(self, kind: str, item: Mapping[str, Any]) -> None:
        """Take an event of a node."""
        node = self._read(item)
        if node is None:
            return
        if kind == "DELETED":
            self._nodes.pop(node.name, None)
        elif self._nodes.get(node.name) == node:
            return  # a heartbeat
        else:
            self._nodes[node.name] = node
        self._enter_nodes()

    def replace_pods(self, items: Iterable[Mapping[str, Any]], begun_s: float) -> None:
        """Take the list of all pods; bindings since the list was begun stay."""
        book = self.decider.book
        pods = [pod for pod in map(self._pod, items) if pod is not None]
        there = {pod.uid for pod in pods}
        self.decider.waiting.keep_listed(there)
        for uid, grant in tuple(book.grants.items()):
            if uid not in there and grant.since_s < begun_s:
                self.decider.waiting.forget(uid)
                book.release(uid)
        for known in sorted(pods, key=lambda pod: pod.gpus is None):  # first those that are known
            self._enter(known)
        self.decider.give_up_without_pods()

    def change_pod(self, kind: str, item: Mapping[str, Any]) -> None:
        """Take an event of a pod."""
        pod = self._pod(item)
        if pod is None:
            return
        if kind == "DELETED":
            self.decider.forget(pod.uid)
        else:
            self._enter(pod)

    def replace_gangs(self, path: str, items: Iterable[Mapping[str, Any]]) -> None:
        """Take the list of all objects of a kind that has sizes of gangs."""
        self._gang_sizes[path] = {}
        for item in items:
            self._enter_gang(path, "ADDED", item)
        self._enter_sizes()

    def change_gang(self, path: str, kind: str, item: Mapping[str, Any]) -> None:
        """Take an event of an object that has sizes of gangs."""
        self._enter_gang(path, kind, item)
        self._enter_sizes()

    def _enter_gang(self, path: str, kind: str, item: Mapping[str, Any]) -> None:
        known = self._gang_sizes.setdefault(path, {})
        try:
            metadata = wire_object(item, "metadata", "gang")
            parts = (wire_text(metadata, key, "gang.metadata") for key in ("namespace", "name"))
            name = "/".join(parts)
            known.pop(name, None)
            if kind != "DELETED":
                known[name] = GANG_OBJECTS[path](item)
        except ValueError as error:
            LOG.warning("gang left out: %s", error)

    def _enter_sizes(self) -> None:
        rows = [sizes for known in self._gang_sizes.values() for sizes in known.values()]
        self.decider.waiting.gang_sizes = {
            key: size for sizes in rows for key, size in sizes.items()
        }

    def _read(self, item: Mapping[str, Any]) -> _Node | None:
        keys = self.decider.keys
        try:
            metadata = wire_object(item, "metadata", "Node")
            status = wire_object(item, "status", "Node")
            offered = wire_object(status, "allocatable", "Node.status")
            labels = wire_texts(metadata, "labels", "Node.metadata")
            places = known_keys(set(labels))
            annotations = wire_texts(metadata, "annotations", "Node.metadata")
            return _Node(
                name=wire_text(metadata, "name", "Node.metadata"),
                labels=tuple((key, labels[key]) for key in places),
                annotation=annotations.get(keys.annotation("topology")),
                resource=next((name for name in keys.resources if name in offered), None),
            )
        except ValueError as error:
            LOG.warning("node left out: %s", error)
            return None

    def _pod(self, item: Mapping[str, Any]) -> PodAsk | None:
        try:
            pod = read_pod(item, self.decider.keys)
        except ValueError as error:
            LOG.warning("pod left out: %s", error)
            return None
        return pod if pod.uid else None

    def _enter_nodes(self) -> None:
        nodes = [self._gpus_of(node) for node in self._nodes.values()]
        texts = {node.annotation for node in self._nodes.values()}
        self._servers = {text: each for text, each in self._servers.items() if text in texts}
        self.decider.book.replace_nodes(nodes, self._cluster())

    def _gpus_of(self, node: _Node) -> NodeGpus:
        if node.resource is None:
            return NodeGpus(name=node.name)
        key = self.decider.keys.annotation("topology")
        if node.annotation is None:
            reason = f"offers {node.resource} without the annotation {key} of the node agent"
            return NodeGpus(name=node.name, no_server_reason=reason, resource=node.resource)
        server = self._servers.get(node.annotation)
        if server is None:
            try:
                server = read_server_annotation(node.annotation, "node")
            except ValueError as error:
                LOG.warning("node %s: %s", node.name, error)
                reason = f"has an annotation {key} that cannot be read"
                return NodeGpus(name=node.name, no_server_reason=reason, resource=node.resource)
            self._servers[node.annotation] = server
        return NodeGpus(
            name=node.name,
            server=server,
            resource=node.resource,
            free=tuple(gpu.number for gpu in server.gpus),
        )

    def _cluster(self) -> Cluster | None:
        """Places of the nodes by their labels; without places where the labels contradict."""
        if not self._nodes:
            return None
        rows = [
            LabelledNode(name=node.name, labels=dict(node.labels), num_gpus=None)
            for node in self._nodes.values()
        ]
        try:
            return cluster_of_labels(rows, known_keys({key for row in rows for key in row.labels}))
        except ValueError as error:
            LOG.warning("places of nodes are not used: %s", error)
            return Cluster(nodes=tuple(ClusterNode(name=name) for name in self._nodes))

    def _enter(self, pod: PodAsk) -> None:
        """Enter a bound pod's GPUs: those of its annotation, else those it was given or may have.

        The device plugin chooses GPUs itself, so without an annotation their numbers are assumed.
        """
        book = self.decider.book
        if pod.phase in FINISHED:
            self.decider.forget(pod.uid)
            return
        if not pod.node and pod.asks:
            before = self.decider.waiting.ask(pod.uid)
            self.decider.waiting.enter_listed(pod)
            if pod.nominated and pod.gang and (before is None or before.nominated != pod.nominated):
                book.news_on = pod.nominated
            return
        self.decider.waiting.settle(pod.uid)
        if pod.node not in book.nodes or not pod.asks:
            return
        held = book.grants.get(pod.uid)
        gpus = pod.gpus
        if gpus is None:
            if held is not None and held.node == pod.node:
                return
            gpus = self._assumed(pod)
        known = set(book.nodes[pod.node].free)
        since_s = 0.0 if held is None else held.since_s
        new = granted(pod, pod.node, tuple(gpu for gpu in gpus if gpu in known), since_s)
        book.enter_outside(new)

    def _assumed(self, pod: PodAsk) -> tuple[int, ...]:
        fit = self.decider.fit(pod, pod.node)
        if isinstance(fit, NodeFit):
            return fit.gpus
        return self.decider.book.not_held(pod.node)[: pod.num_gpus]
