"""Cases of the extender: recorded pairs, books of clusters, pods, and kube-scheduler's decoding."""

import copy
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.devices.k8s.book import GpuBook, Grant, NodeGpus
from agents.devices.k8s.decider import Decider
from des.devices.cluster import Cluster, ClusterNode
from des.devices.files.server_files import read_files
from des.devices.presets import simulated
from des.devices.server import Server

GOLDEN = Path(__file__).parent / "golden" / "k8s"
TOPOLOGIES = Path(__file__).parent / "golden" / "topo"
PAIRS = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(GOLDEN.glob("*.json"))}
PREFIX = "topology.example.com"


def nodes_of(state: Mapping[str, Any], held: Mapping[str, Any]) -> list[NodeGpus]:
    """Nodes of a recorded state; GPUs of its pods are free but for these."""
    found = []
    for name, row in state.items():
        server = None
        if row["topology"] is not None:
            server = read_files([TOPOLOGIES / f"{row['topology']}.txt"]).server
        pods = {gpu for pod in held.values() if pod["node"] == name for gpu in pod["gpus"]}
        found.append(NodeGpus(name=name, server=server, free=tuple(sorted(pods | {*row["free"]}))))
    return found


def decider_of(pair: Mapping[str, Any]) -> Decider:
    """Extender that knows a recorded state."""
    held = pair.get("victims_hold", {})
    book = book_of(nodes_of(pair["state"], held))
    for uid, pod in held.items():
        book.grant(grant_of(uid, pod["node"], pod["gpus"]))
    return Decider(book=book)


def grant_of(uid: str, node: str, gpus: Sequence[int], **more: Any) -> Grant:
    return Grant(uid=uid, namespace="ml", name=uid, node=node, gpus=tuple(gpus), **more)


def book_of(nodes: Sequence[NodeGpus]) -> GpuBook:
    """Book of nodes without places in a network."""
    book = GpuBook()
    book.replace_nodes(nodes, flat_cluster([node.name for node in nodes]) if nodes else None)
    return book


def flat_cluster(names: Sequence[str]) -> Cluster:
    return Cluster(nodes=tuple(ClusterNode(name=name) for name in names))


def whole_nodes(names: Sequence[str], server: Server | None = None) -> list[NodeGpus]:
    """Nodes of one kind, all GPUs free."""
    own = server or simulated("dgx-1-v100")
    numbers = tuple(gpu.number for gpu in own.gpus)
    return [NodeGpus(name=name, server=own, free=numbers) for name in names]


def pod(uid: str, count: int, /, **annotations: str) -> dict[str, Any]:
    """Pod as kube-scheduler sends it; ``gang_size`` becomes the annotation gang-size."""
    return {
        "metadata": {
            "name": uid,
            "namespace": "ml",
            "uid": uid,
            "annotations": {
                f"{PREFIX}/{name.replace('_', '-')}": text for name, text in annotations.items()
            },
        },
        "spec": {
            "containers": [{"resources": {"limits": {"nvidia.com/gpu": str(count)}}}],
        },
    }


def args(of_pod: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """``ExtenderArgs`` by names."""
    return {"Pod": of_pod, "Nodes": None, "NodeNames": list(names)}


def bind_args(uid: str, node: str) -> dict[str, Any]:
    return {"PodName": uid, "PodNamespace": "ml", "PodUID": uid, "Node": node}


def pod_filtered_before(pair: Mapping[str, Any]) -> dict[str, Any]:
    """Filter call of the pod that a recorded bind call is about."""
    call = copy.deepcopy(PAIRS["e02-filter-node-names"]["request"])
    call["Pod"]["metadata"]["uid"] = pair["request"]["PodUID"]
    call["Pod"]["metadata"]["name"] = pair["request"]["PodName"]
    return call


def assert_matches(found: Any, expected: Any) -> None:
    """Answer is the expected one; ``<text>`` is any text, and an empty map may be null."""
    if expected == "<text>":
        assert isinstance(found, str)
        assert found
    elif isinstance(expected, dict):
        assert (found or {}).keys() == expected.keys()
        for key, value in expected.items():
            assert_matches(found[key], value)
    else:
        assert found == expected


def assert_filtered(found: Mapping[str, Any], pair: Mapping[str, Any]) -> None:
    """Filter result obeys the rules of a pair."""
    expected = pair["expect"]
    if "body" in expected:
        assert_matches(found, expected["body"])
        return
    assert sorted(found) == sorted(expected["body_exact_keys"])
    items = {item["metadata"]["name"]: item for item in pair["request"]["Nodes"]["items"]}
    assert found["Nodes"] == {
        **pair["request"]["Nodes"],
        "items": [items[name] for name in expected["nodes_kept"]],
    }
    assert found["NodeNames"] is expected["NodeNames"] is None
    assert list(found["FailedNodes"]) == expected["failed"]
    assert list(found["FailedAndUnresolvableNodes"]) == expected["unresolvable"]
    assert found["Error"] == expected["Error"]


def assert_scored(found: Sequence[Mapping[str, Any]], pair: Mapping[str, Any]) -> None:
    """Scores obey the rules of a pair."""
    expected = pair["expect"]
    assert [set(item) for item in found] == [set(expected["items"]["keys"])] * len(found)
    assert [item["Host"] for item in found] == expected["hosts_exactly"]
    score_of = {item["Host"]: item["Score"] for item in found}
    for rule in expected["order_rules"]:
        higher, lower = re.fullmatch(r"score\((.*)\) > score\((.*)\)", rule).groups()
        assert score_of[higher] > score_of[lower]


def decoded_scores(text: bytes, names: Sequence[str]) -> dict[str, int]:
    """Scores as kube-scheduler decodes them: whole numbers of 64 bits, hosts that it named."""

    def whole_only(number: str) -> float:
        raise AssertionError(f"{number} does not decode into int64")

    found = dict.fromkeys(names, 0)  # a host that is missing counts 0
    for item in json.loads(text, parse_float=whole_only):
        of = {key.lower(): value for key, value in item.items()}
        assert of["host"] in found
        assert isinstance(of["score"], int)
        assert 0 <= of["score"] <= 10
        found[of["host"]] += of["score"]
    return found
