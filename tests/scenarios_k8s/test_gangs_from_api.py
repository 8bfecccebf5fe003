"""Gangs as the API server tells them: sizes from objects, siblings that wait, restarts."""

import pytest
from api_server_cases import ApiCluster, api_of, api_server
from k8s_cases import PREFIX, args, bind_args, book_of, pod
from k8s_services import loop_in_thread
from processes import wait_until

from agents.devices.k8s.decider import Decider
from agents.devices.k8s.verbs import Binding, begin_binding, filter_answer
from des.devices.k8s.node_text import server_annotation
from des.devices.presets import simulated
from scenarios.k8s.service import ExtenderService
from scenarios.k8s.sources import ApiSource

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
NAMES = ["a", "b"]
GROUPS = {
    "/apis/scheduling.k8s.io/v1beta1/podgroups": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    "/apis/scheduling.k8s.io/v1alpha2/podgroups": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    "/apis/scheduling.x-k8s.io/v1alpha1/podgroups": {"minMember": 2},
    "/apis/scheduling.k8s.io/v1alpha1/workloads": {
        "podGroups": [{"name": "g", "policy": {"gang": {"minCount": 2}}}]
    },
}
REFERENCES = {
    "v1beta1": ("spec", {"schedulingGroup": {"podGroupName": "w"}}),
    "v1alpha2": ("spec", {"schedulingGroup": {"podGroupName": "w"}}),
    "x-k8s.io": ("metadata", {"labels": {"scheduling.x-k8s.io/pod-group": "w"}}),
    "workloads": ("spec", {"workloadRef": {"name": "w", "podGroup": "g"}}),
}


@pytest.fixture
def cluster():
    """Two empty DGX-1."""
    found = ApiCluster()
    text = server_annotation(simulated("dgx-1-v100"))
    for name in NAMES:
        metadata = {"name": name, "annotations": {f"{PREFIX}/topology": text}}
        found.put(NODES, {"metadata": metadata, "status": {"allocatable": {"nvidia.com/gpu": "8"}}})
    return found


@pytest.fixture
def decider(cluster, tmp_path):
    """Extender's decisions, whose state follows the cluster."""
    service = ExtenderService(decider=Decider(book=book_of([])))
    with api_server(cluster) as url, loop_in_thread() as loop:
        source = ApiSource(api=api_of(tmp_path, url), service=service)
        source.begin(loop)
        assert wait_until(lambda: service.known_at_s is not None)
        yield service.decider
        source.stop.set()


def slots(decider: Decider, gang: str) -> list[int]:
    promise = decider.book.promises.get(("ml", gang))
    return sorted(len(slot.fit.gpus) for slot in promise.slots) if promise else []


@pytest.mark.parametrize("path", GROUPS)
def test_objects_say_the_size_of_a_gang(cluster, path, request):
    """The object is read before the first pod, and may be deleted again."""
    cluster.objects[path] = {}
    metadata = {"name": "w", "namespace": "ml"}
    cluster.put(path, {"metadata": metadata, "spec": GROUPS[path]})
    decider = request.getfixturevalue("decider")
    waiting = decider.waiting
    assert wait_until(lambda: waiting.gang_sizes)
    part, reference = next(each for key, each in REFERENCES.items() if key in path)
    of_pod = pod("p", 8)
    of_pod[part] |= reference

    filter_answer(decider, args(of_pod, NAMES), 0.0)

    assert slots(decider, "w/g" if "workloads" in path else "w") == [8, 8]
    cluster.delete(path, "w")
    assert wait_until(lambda: not waiting.gang_sizes)


def test_siblings_that_wait_are_known_by_their_size(cluster, decider):
    """Two workers of four and a leader of eight: the worker's call promises the leader's slot."""
    for uid, count in (("lead", 8), ("w-0", 4), ("w-1", 4)):
        cluster.put(PODS, pod(uid, count, gang="g", gang_size="3"))
    assert wait_until(lambda: len(decider.waiting) == 3)

    filter_answer(decider, args(pod("w-0", 4, gang="g", gang_size="3"), NAMES), 0.0)

    assert slots(decider, "g") == [4, 4, 8]


def test_siblings_that_are_gone_or_have_a_node_do_not_wait(cluster, decider):
    for uid in ("gone", "placed", "done", "left"):
        cluster.put(PODS, pod(uid, 8, gang="g", gang_size="2"))
    assert wait_until(lambda: len(decider.waiting) == 4)
    placed = pod("placed", 8, gang="g", gang_size="2")
    placed["spec"]["nodeName"] = "elsewhere"
    cluster.put(PODS, placed)
    cluster.put(PODS, pod("done", 8) | {"status": {"phase": "Failed"}})
    cluster.delete(PODS, "gone")
    with cluster.changed:
        del cluster.objects[PODS]["left"]
    cluster.forget_history()  # everything is listed again

    ask = decider.remember(pod("p", 4, gang="g", gang_size="2"), 0.0)
    assert wait_until(lambda: not decider.waiting.siblings(ask, 0.0))


def test_a_pod_is_bound_after_a_restart_between_its_calls(cluster, decider):
    """The new process has not seen the filter call; it knows the pod from the API server."""
    cluster.put(PODS, pod("p", 4))
    assert wait_until(lambda: len(decider.waiting) == 1)

    binding = begin_binding(decider, bind_args("p", "a"), 0.0)

    assert isinstance(binding, Binding)
    assert len(binding.grant.gpus) == 4
