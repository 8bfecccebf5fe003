"""State from an API server: list, watch, Gone, an outage, bound pods; bindings posted to it."""

import asyncio
import json
import time

import pytest
from api_server_cases import ApiCluster, api_of, api_server, kubeconfig
from k8s_cases import PREFIX, args, book_of, pod
from k8s_services import loop_in_thread
from processes import wait_until

from agents.devices.k8s.decider import Decider
from agents.devices.k8s.verbs import Binding, begin_binding, filter_answer
from des.devices.k8s.node_text import server_annotation
from des.devices.presets import simulated
from scenarios.k8s.kubeconfig import log_in
from scenarios.k8s.service import ExtenderService
from scenarios.k8s.sources import ApiSource

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"


def node(name: str, kind: str | None = "dgx-1-v100", **labels: str) -> dict:
    annotations = {}
    if kind is not None:
        annotations[f"{PREFIX}/topology"] = server_annotation(simulated(kind))
    return {
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "status": {"allocatable": {"nvidia.com/gpu": "8"} if kind else {}},
    }


def bound_pod(uid: str, of_node: str, count: int, /, phase: str = "Running", **more: str) -> dict:
    found = pod(uid, count, **more)
    found["spec"]["nodeName"] = of_node
    return {**found, "status": {"phase": phase}}


@pytest.fixture
def cluster():
    """Three nodes, more than a page, one of them without GPUs; one pod."""
    found = ApiCluster()
    for name in ("a", "b"):
        found.put(NODES, node(name))
    found.put(NODES, node("cpu", None))
    found.put(PODS, bound_pod("old", "a", 2, gpus="6,7"))
    return found


@pytest.fixture
def watched(cluster, tmp_path):
    """Service that watches the cluster."""
    service = ExtenderService(decider=Decider(book=book_of([])))
    with api_server(cluster) as url, loop_in_thread() as loop:
        source = ApiSource(api=api_of(tmp_path, url), service=service)
        source.begin(loop)
        assert wait_until(lambda: service.known_at_s is not None)
        yield service
        source.stop.set()


def in_book(service: ExtenderService, uid: str) -> bool:
    return uid in service.decider.book.grants


def failures(service: ExtenderService) -> float:
    name = "eastwest_extender_state_failures_total"
    return service.metrics.registry.get_sample_value(name)


def test_nodes_and_pods_are_listed(watched, cluster):
    book = watched.decider.book

    assert set(book.nodes) == {"a", "b", "cpu"}
    assert book.nodes["cpu"].server is None
    assert wait_until(lambda: in_book(watched, "old"))
    assert book.free("a") == (0, 1, 2, 3, 4, 5)
    assert ("/api/v1/nodes", {"limit": "500", "continue": "2"}) in cluster.queries
    assert wait_until(lambda: any(query.get("watch") for _, query in cluster.queries))
    watches = [query for _, query in cluster.queries if query.get("watch")]
    assert {query["allowWatchBookmarks"] for query in watches} == {"true"}


def test_events_change_the_book(watched, cluster):
    book = watched.decider.book
    cluster.put(PODS, bound_pod("new", "b", 4))
    assert wait_until(lambda: in_book(watched, "new"))
    assert len(book.grants["new"].gpus) == 4  # numbers are assumed

    cluster.put(PODS, bound_pod("new", "b", 4, phase="Succeeded"))
    assert wait_until(lambda: not in_book(watched, "new"))
    cluster.delete(PODS, "old")
    assert wait_until(lambda: not in_book(watched, "old"))
    cluster.put(NODES, node("c", "dgx-h100"))
    assert wait_until(lambda: "c" in book.nodes)
    cluster.delete(NODES, "b")
    assert wait_until(lambda: "b" not in book.nodes)


def test_a_heartbeat_of_a_node_changes_nothing(watched, cluster):
    assert wait_until(lambda: in_book(watched, "old"))
    before = watched.decider.book.version
    cluster.put(NODES, node("a"))
    cluster.put(PODS, bound_pod("mark", "b", 1))
    assert wait_until(lambda: in_book(watched, "mark"))

    assert watched.decider.book.version == before + 1


def test_after_gone_everything_is_listed_again(watched, cluster):
    """A pod that ended while the history was lost is found to be gone."""
    assert wait_until(lambda: in_book(watched, "old"))
    with cluster.changed:
        del cluster.objects[PODS]["old"]
        cluster.objects[PODS]["late"] = bound_pod("late", "b", 1)
    cluster.forget_history()

    assert wait_until(lambda: in_book(watched, "late") and not in_book(watched, "old"))


def test_an_outage_leaves_the_last_state_and_its_age_grows(watched, cluster):
    assert wait_until(lambda: in_book(watched, "old"))
    cluster.set_up(False)
    assert wait_until(lambda: failures(watched) > 0)

    assert in_book(watched, "old")
    assert wait_until(lambda: (watched.age_s or 0.0) > 0.05)
    cluster.set_up(True)
    cluster.put(PODS, bound_pod("back", "b", 1))
    assert wait_until(lambda: in_book(watched, "back"))


def test_a_damaged_annotation_costs_one_node(watched, cluster):
    damaged = node("d")
    damaged["metadata"]["annotations"][f"{PREFIX}/topology"] = "{"
    cluster.put(NODES, damaged)

    assert wait_until(lambda: "d" in watched.decider.book.nodes)
    assert watched.decider.book.nodes["d"].server is None
    assert watched.decider.book.nodes["a"].server is not None
    assert "that cannot be read" in watched.decider.book.nodes["d"].no_server_reason


def test_reasons_tell_a_node_without_gpus_from_one_without_the_agent(watched, cluster):
    bare = node("bare")
    bare["metadata"]["annotations"] = {}
    cluster.put(NODES, bare)
    assert wait_until(lambda: "bare" in watched.decider.book.nodes)

    found = filter_answer(watched.decider, args(pod("p", 2), ["bare", "cpu"]), 0.0)

    assert found["FailedAndUnresolvableNodes"] == {
        "bare": f"offers nvidia.com/gpu without the annotation {PREFIX}/topology of the node agent",
        "cpu": "has no GPUs",
    }


def test_a_gang_that_was_bound_is_known_after_a_restart(watched, cluster):
    cluster.put(PODS, bound_pod("g-0", "b", 4, gang="g", gang_size="2", gpus="0,1,2,3"))

    assert wait_until(lambda: in_book(watched, "g-0"))
    assert len(watched.decider.book.bound(("ml", "g"))) == 1


@pytest.mark.parametrize("refusal", [None, (409, {"message": "pod is already assigned"})])
def test_bindings_are_posted(cluster, refusal, tmp_path, monkeypatch):
    """To the API server itself, whatever proxy the environment names for other programs."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    cluster.refusal = refusal
    decider = Decider(book=book_of([]))
    decider.remember(pod("p", 0), 0.0)
    binding = begin_binding(
        decider, {"PodName": "p/q", "PodNamespace": "ml", "PodUID": "p", "Node": "a"}, time.time()
    )
    assert isinstance(binding, Binding)
    with api_server(cluster) as url:
        error = api_of(tmp_path, url, token="secret").post(binding.path, binding.object_to_post())

    ((path, content),) = cluster.posted
    assert path == "/api/v1/namespaces/ml/pods/p%2Fq/binding"
    assert content["target"] == {"apiVersion": "v1", "kind": "Node", "name": "a"}
    assert ("already assigned" in error) == (refusal is not None)


def test_an_api_server_that_is_away_is_an_error_of_the_binding(tmp_path):
    api = api_of(tmp_path, "http://127.0.0.1:9", timeout_s=5.0)

    assert "127.0.0.1:9" in api.post("/api/v1/x", {})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"current-context": "x"}, "contexts: must have a context named 'x'"),
        ({"users": []}, "users: must have a user named 'u'"),
        ({"users": [{"name": "u", "user": {"exec": 1}}]}, "user.exec: .*valid dictionary"),
        ({"users": [{"name": "u", "user": {"username": "x"}}]}, "user: username is not supported"),
        ({"clusters": [{"name": "k", "cluster": {}}]}, "cluster: server must be http"),
        (
            {"clusters": [{"name": "k", "cluster": {"server": 5}}]},
            "a field has a value of another kind",
        ),
        ({"clusters": [{"name": "k", "cluster": {"server": "ftp://a"}}]}, "server must be http"),
        ({"clusters": 5}, "clusters: must have a cluster named 'k'"),
        ({"users": [{"name": "u", "user": {"client-certificate-data": "*"}}]}, "cannot be used"),
        ({"users": [{"name": "u", "user": {"tokenFile": "none"}}]}, "none: cannot be read"),
    ],
)
def test_a_wrong_kubeconfig_is_refused(change, match, tmp_path):
    path = kubeconfig(tmp_path, "https://127.0.0.1:1/", token="t")
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")

    with pytest.raises(ValueError, match=f"config: .*{match}"):
        log_in(path)


def test_answers_wait_for_the_first_lists(cluster, tmp_path):
    """Between the start and the first list there is no state."""
    service = ExtenderService(decider=Decider(book=book_of([])))
    with loop_in_thread() as loop:
        api = api_of(tmp_path, "http://127.0.0.1:9", timeout_s=0.2)
        source = ApiSource(api=api, service=service)
        source.begin(loop)
        assert wait_until(lambda: failures(service) > 0)
        source.stop.set()
        done = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop)
        done.result(60.0)

    assert service.known_at_s is None
