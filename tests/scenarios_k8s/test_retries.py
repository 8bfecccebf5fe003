"""Waiting pods hear of promises that ended, by requests that an API server records."""

import asyncio
from contextlib import contextmanager
from pathlib import Path

import pytest
from api_server_cases import ApiCluster, api_of, api_server
from k8s_cases import PREFIX, args, book_of, pod, whole_nodes
from k8s_services import loop_in_thread, service_of
from processes import wait_until

from agents.devices.k8s.decider import Decider
from agents.devices.k8s.verbs import filter_answer
from scenarios.k8s.api_state import ApiState
from scenarios.k8s.running import follow_promises

NAMES = ["a", "b"]


@contextmanager
def followed(folder: Path, timeout_s: float):
    """A service whose promises are followed, and the cluster that is told."""
    service = service_of(Decider(book=book_of(whole_nodes(NAMES)), gang_timeout_s=timeout_s))
    cluster = ApiCluster()
    with api_server(cluster) as url, loop_in_thread() as loop:
        api = api_of(folder, url)

        async def patch(path, content):
            return await asyncio.to_thread(api.patch, path, content)

        task = follow_promises(service, patch, period_s=0.01)
        asyncio.run_coroutine_threadsafe(task, loop)
        yield service, cluster


def promise_to(service, gang: str) -> dict:
    of_pod = pod(f"{gang}-0", 8, gang=gang, gang_size="2")
    names = filter_answer(service.decider, args(of_pod, NAMES), service.clock())["NodeNames"]
    assert names == NAMES
    return of_pod


def told(cluster) -> list[tuple[str, str]]:
    """Nodes that were patched, and the kind of the patches; each says a time of its own."""
    times = [
        content["metadata"]["annotations"][f"{PREFIX}/promises-ended"]
        for _, _, content in cluster.patched
    ]
    assert len(set(times)) == len(times)
    return [(path, kind) for path, kind, _ in cluster.patched]


A_PATCH = ("/api/v1/nodes/a", "application/merge-patch+json")


@pytest.mark.attack
def test_an_expired_promise_is_an_event_of_the_cluster(tmp_path):
    """Without any call to the extender: a pod that waits makes none."""
    with followed(tmp_path, timeout_s=0.05) as (service, cluster):
        promise_to(service, "g")
        assert wait_until(lambda: cluster.patched)
        assert not service.decider.book.promises
        promise_to(service, "h")
        assert wait_until(lambda: len(cluster.patched) == 2)

    assert told(cluster) == [A_PATCH, A_PATCH]


@pytest.mark.attack
def test_the_promise_of_deleted_pods_is_one_too(tmp_path):
    """As soon as the last of them is gone; the list of all pods tells it as a watch does."""
    with followed(tmp_path, timeout_s=600.0) as (service, cluster):
        state = ApiState(decider=service.decider)
        of_pod = promise_to(service, "g")
        state.change_pod("ADDED", of_pod)
        state.change_pod("ADDED", pod("waits", 8))
        state.change_pod("DELETED", of_pod)
        assert wait_until(lambda: len(cluster.patched) == 1)
        state.change_pod("ADDED", promise_to(service, "h"))
        state.replace_pods([pod("waits", 8)], service.clock())
        assert wait_until(lambda: len(cluster.patched) == 2)
        assert not service.decider.book.promises


@pytest.mark.attack
def test_held_gpus_that_get_free_are_one_where_pods_wait(tmp_path):
    """kube-scheduler hears of a deleted pod too, and may have asked again before the extender."""
    with followed(tmp_path, timeout_s=600.0) as (service, cluster):
        state = ApiState(decider=service.decider)
        held = [
            {**pod(name, 8), "spec": {**pod(name, 8)["spec"], "nodeName": "a"}} for name in "xy"
        ]
        state.change_pod("ADDED", held[0])
        state.change_pod("DELETED", held[0])
        assert wait_until(lambda: service.decider.book.news_on is None)
        assert cluster.patched == []
        state.change_pod("ADDED", held[1])
        state.change_pod("ADDED", pod("waits", 8))
        state.change_pod("DELETED", held[1])
        assert wait_until(lambda: len(cluster.patched) == 1)

    assert told(cluster) == [A_PATCH]


@pytest.mark.attack
def test_a_refused_event_is_tried_again(caplog, tmp_path):
    """The right may be missing for a while; the log says it once."""
    with followed(tmp_path, timeout_s=0.05) as (service, cluster):
        cluster.refusal = (403, {"message": "nodes is forbidden"})
        promise_to(service, "g")
        assert wait_until(lambda: len(cluster.patched) >= 3)
        cluster.refusal = None
        assert wait_until(lambda: service.decider.book.news_on is None)

    warnings = [record.message for record in caplog.records if "not told" in record.message]
    assert warnings == [
        "node a: API server: 403 nodes is forbidden; waiting pods are not told that GPUs are free"
    ]
