"""Calls of kube-scheduler to an extender (k8s.io/kube-scheduler/extender/v1), read and checked.

The Go types have no tags: keys on the wire are their field names, nil is null, and a decoder in Go
does not mind the case of keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from des.devices.k8s.wire import wire_list, wire_object, wire_text, wire_value

MOST_PDB_VIOLATIONS = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateNodes:
    """Candidates of a filter or prioritize call.

    Attributes
    ----------
    names
        Names of the nodes, in the order of the call.
    node_list
        List of whole nodes as it came, where the extender holds no cache; else None.
    items
        Whole nodes, one for each name, as they came; empty where names alone came.
    """

    names: tuple[str, ...]
    node_list: Mapping[str, Any] | None = None
    items: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingCall:
    """A bind call: pod and node."""

    name: str
    namespace: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """Pods that would be evicted from a node, by UID, and broken disruption budgets."""

    node: str
    uids: tuple[str, ...]
    num_pdb_violations: int


def pod_in(body: Mapping[str, Any], call: str) -> dict[str, Any]:
    """Pod of a call.

    Raises
    ------
    ValueError
        If there is none.
    """
    pod = wire_value(body, "Pod")
    if not isinstance(pod, dict):
        raise ValueError(f"{call}: Pod must be an object, got {type(pod).__name__}")
    return pod


def read_nodes(body: Mapping[str, Any]) -> CandidateNodes:
    """Read the candidates of an ``ExtenderArgs``: names, or whole nodes.

    Raises
    ------
    ValueError
        If both are null, or a part has another type.
    """
    names = wire_value(body, "NodeNames")
    if names is not None:
        if not isinstance(names, list) or not set(map(type, names)) <= {str}:
            raise ValueError("ExtenderArgs: NodeNames must be a list of names or null")
        return CandidateNodes(names=tuple(names))
    nodes = wire_value(body, "Nodes")
    if not isinstance(nodes, dict):
        raise ValueError("ExtenderArgs: one of Nodes and NodeNames must be given")
    items = wire_list(nodes, "items", "ExtenderArgs.Nodes")
    found = []
    for item in items:
        if not isinstance(item, dict):
            raise ValueError("ExtenderArgs: Nodes.items must be objects")
        metadata = wire_object(item, "metadata", "Node")
        found.append(wire_text(metadata, "name", "Node.metadata"))
    return CandidateNodes(names=tuple(found), node_list=nodes, items=tuple(items))


def read_binding(body: Mapping[str, Any]) -> BindingCall:
    """Read an ``ExtenderBindingArgs``.

    Raises
    ------
    ValueError
        If a part is missing or no text.
    """
    call = "ExtenderBindingArgs"
    fields = ("PodName", "PodNamespace", "PodUID", "Node")
    texts = [wire_text(body, field, call) for field in fields]
    for field, text in zip(fields, texts, strict=True):
        if not text:
            raise ValueError(f"{call}: {field} must be given")
    name, namespace, uid, node = texts
    return BindingCall(name=name, namespace=namespace, uid=uid, node=node)


def read_victims(body: Mapping[str, Any]) -> tuple[Victims, ...]:
    """Read the victims of an ``ExtenderPreemptionArgs``: UIDs, or whole pods.

    Raises
    ------
    ValueError
        If both forms are null, or a part has another type.
    """
    call = "ExtenderPreemptionArgs"
    key = "NodeNameToMetaVictims"
    if wire_value(body, key) is None:
        key = "NodeNameToVictims"
    if wire_value(body, key) is None:
        raise ValueError(
            f"{call}: one of NodeNameToMetaVictims and NodeNameToVictims must be given"
        )
    found = []
    for node, victims in wire_object(body, key, call).items():
        if victims is not None and not isinstance(victims, dict):
            raise ValueError(f"{call}: victims of {node} must be an object")
        pods = wire_list(victims or {}, "Pods", f"{call}.{node}")
        number = wire_value(victims or {}, "NumPDBViolations") or 0
        if isinstance(number, bool) or not isinstance(number, int):
            raise ValueError(f"{call}: NumPDBViolations of {node} must be a whole number")
        if not -MOST_PDB_VIOLATIONS <= number <= MOST_PDB_VIOLATIONS:
            raise ValueError(f"{call}: NumPDBViolations of {node} must fit into 64 bits")
        uids = tuple(_uid(pod, is_meta=key == "NodeNameToMetaVictims") for pod in pods)
        found.append(Victims(node=node, uids=uids, num_pdb_violations=number))
    return tuple(found)


def _uid(pod: object, *, is_meta: bool) -> str:
    if not isinstance(pod, dict):
        raise ValueError("ExtenderPreemptionArgs: Pods must be objects")
    owner = pod if is_meta else wire_object(pod, "metadata", "Pod")
    uid = wire_text(owner, "UID", "victim")
    if not uid:
        raise ValueError("ExtenderPreemptionArgs: a victim must have a UID")
    return uid
