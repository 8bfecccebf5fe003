"""Answers of a scheduler's extender, as the objects that go over the wire."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from agents.devices.k8s.book import Grant, granted
from agents.devices.k8s.decider import Decider, Priority
from agents.devices.k8s.gangs import gang_fits, gang_nodes
from agents.devices.k8s.node_fit import NoFit
from des.devices.k8s.calls import (
    BindingCall,
    CandidateNodes,
    Victims,
    pod_in,
    read_binding,
    read_nodes,
    read_victims,
)
from des.devices.k8s.pods import PodAsk, PodKeys
from des.devices.server import Server


def filter_answer(decider: Decider, body: Mapping[str, Any], now_s: float) -> dict[str, Any]:
    """``ExtenderFilterResult`` of an ``ExtenderArgs``.

    Nodes come back in the form and order in which they came. A node where evicting pods may help is
    in ``FailedNodes``, any other in ``FailedAndUnresolvableNodes``.

    Raises
    ------
    ValueError
        If the body is no ``ExtenderArgs``.
    """
    candidates = read_nodes(body)
    ask = decider.remember(pod_in(body, "ExtenderArgs"), now_s)
    decider.book.expire(now_s)
    of_gang = gang_nodes(decider, ask, candidates.names, now_s)
    kept: list[int] = []
    failed: dict[str, str] = {}
    never: dict[str, str] = {}
    for place, name in enumerate(candidates.names):
        if of_gang is not None and name in of_gang[0]:
            kept.append(place)
            continue
        fit = decider.fit(ask, name)
        if isinstance(fit, NoFit):
            (failed if fit.can_be_freed else never)[name] = fit.reason
        elif of_gang is not None:
            failed[name] = of_gang[1]
        else:
            kept.append(place)
    return {
        **_keep(candidates, kept),
        "FailedNodes": failed,
        "FailedAndUnresolvableNodes": never,
        "Error": "",
    }


def _keep(candidates: CandidateNodes, kept: list[int]) -> dict[str, Any]:
    """Nodes that are left: names, or the list with whole nodes as they came."""
    if candidates.node_list is None:
        return {"Nodes": None, "NodeNames": [candidates.names[place] for place in kept]}
    rest = {key: value for key, value in candidates.node_list.items() if key.lower() != "items"}
    return {
        "Nodes": {**rest, "items": [candidates.items[place] for place in kept]},
        "NodeNames": None,
    }


def prioritize_answer(decider: Decider, body: Mapping[str, Any], now_s: float) -> list[Priority]:
    """``HostPriorityList`` of an ``ExtenderArgs``: whole scores from 0 to 10, one for each node.

    Raises
    ------
    ValueError
        If the body is no ``ExtenderArgs``.
    """
    candidates = read_nodes(body)
    ask = decider.remember(pod_in(body, "ExtenderArgs"), now_s)
    decider.book.expire(now_s)
    return decider.priorities(ask, candidates.names)


def preempt_answer(decider: Decider, body: Mapping[str, Any], now_s: float) -> dict[str, Any]:
    """``ExtenderPreemptionResult``: the nodes where the pod fits once the victims are gone.

    It always has UIDs. Victims that hold GPUs of another node are left out; so is a node that has
    none left, as kube-scheduler takes an empty list for an error. GPUs promised to gangs stay so.
    A pod of a gang has no victims unless all of the gang fits once all victims offered are gone: a
    gang that does not fit as a whole is not begun, so they would go for nothing.

    Raises
    ------
    ValueError
        If the body is no ``ExtenderPreemptionArgs``.
    """
    victims = read_victims(body)
    ask = decider.remember(pod_in(body, "ExtenderPreemptionArgs"), now_s)
    decider.book.expire(now_s)
    freed = {each.node: _freed(decider, each) for each in victims}
    found: dict[str, Any] = {}
    for each in victims if gang_fits(decider, ask, freed, now_s) else ():
        uids = _evicted(decider, ask, each)
        if uids:
            found[each.node] = {
                "Pods": [{"UID": uid} for uid in uids],
                "NumPDBViolations": each.num_pdb_violations,
            }
    return {"NodeNameToMetaVictims": found}


def _evicted(decider: Decider, ask: PodAsk, victims: Victims) -> list[str]:
    """Victims on a node, if the pod fits on it without them."""
    grants = decider.book.grants
    uids = [uid for uid in victims.uids if uid not in grants or grants[uid].node == victims.node]
    if not ask.asks:
        return uids
    if victims.node not in decider.book.nodes:
        return []
    left = {*decider.book.free(victims.node), *_freed(decider, victims)}
    own = decider.book.nodes[victims.node].free
    free = tuple(gpu for gpu in own if gpu in left)
    return [] if isinstance(decider.fit(ask, victims.node, free), NoFit) else uids


def _freed(decider: Decider, victims: Victims) -> set[int]:
    """GPUs of a node that its victims hold."""
    held = (decider.book.grants.get(uid) for uid in victims.uids)
    return {gpu for one in held if one is not None and one.node == victims.node for gpu in one.gpus}


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A binding under way: GPUs are held, the API server is to be told.

    Attributes
    ----------
    call
        Pod and node.
    ask
        Demand of the pod.
    grant
        GPUs held for it.
    is_new
        Whether this call took them; else the pod had them already.
    """

    call: BindingCall
    ask: PodAsk
    grant: Grant
    is_new: bool

    @property
    def path(self) -> str:
        """Path of the POST on the API server."""
        namespace, name = (quote(each, safe="") for each in (self.call.namespace, self.call.name))
        return f"/api/v1/namespaces/{namespace}/pods/{name}/binding"

    def object_to_post(
        self, keys: PodKeys | None = None, server: Server | None = None
    ) -> dict[str, Any]:
        """``Binding`` to post; with annotations, which the API server copies to the pod.

        With keys they are its GPUs, ``gpu-ids`` and ``gpus``, by which an extender knows them after
        a restart, and the NUMA nodes of these on the server, where they are known.
        """
        metadata: dict[str, Any] = {
            "name": self.call.name,
            "namespace": self.call.namespace,
            "uid": self.call.uid,
        }
        if keys is not None and self.grant.gpus:
            gpus = ",".join(map(str, self.grant.gpus))
            known = {"gpus": gpus, "gpu-ids": gpus, "numa-node": self._numa_text(server)}
            metadata["annotations"] = {
                keys.annotation(name): text for name, text in known.items() if text
            }
        return {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.call.node},
        }

    def _numa_text(self, server: Server | None) -> str:
        gpus = () if server is None else server.gpus
        held = {gpu.numa_nodes[:1] for gpu in gpus if gpu.number in self.grant.gpus}
        return "" if () in held else ",".join(str(node) for (node,) in sorted(held))


def begin_binding(decider: Decider, body: Mapping[str, Any], now_s: float) -> Binding | str:
    """Hold GPUs for a pod on a node; returns the reason where that cannot be.

    Raises
    ------
    ValueError
        If the body is no ``ExtenderBindingArgs``.
    """
    call = read_binding(body)
    book = decider.book
    book.expire(now_s)
    ask = decider.waiting.ask(call.uid)
    if ask is None:
        return f"pod {call.namespace}/{call.name} ({call.uid}): not seen in a filter call"
    held = book.grants.get(call.uid)
    if held is not None:
        if held.node != call.node:
            return f"pod {call.namespace}/{call.name}: already holds GPUs of node {held.node}"
        return Binding(call=call, ask=ask, grant=held, is_new=False)
    grant = book.claim(ask, call.node, now_s)
    if grant is None:
        if book.slots_of(ask):
            return f"node {call.node}: gang {ask.gang} has GPUs promised on other nodes"
        fit = decider.fit(ask, call.node)
        if isinstance(fit, NoFit):
            return f"node {call.node}: {fit.reason}"
        grant = granted(ask, call.node, fit.gpus, now_s)
        if fit.gpus:
            book.grant(grant)
    return Binding(call=call, ask=ask, grant=grant, is_new=True)


def end_binding(decider: Decider, binding: Binding, error: str, now_s: float) -> dict[str, Any]:
    """``ExtenderBindingResult``; after an error the GPUs are given back.

    A pod of a gang gives them back to its gang, if that still has its promise.
    """
    if error and binding.is_new and decider.book.grants.get(binding.call.uid) is binding.grant:
        decider.book.give_back(binding.ask, now_s)
    return {"Error": error}
