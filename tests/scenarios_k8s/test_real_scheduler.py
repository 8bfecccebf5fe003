"""Gangs, promises and manifests with a real API server and kube-scheduler, where they are there.

``KUBE_BIN=FOLDER pytest -m attack tests/scenarios_k8s/test_real_scheduler.py``
"""

import re
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_output import assert_refused
from k8s_cases import PREFIX
from real_cluster import NEEDED, api_cluster, scheduled, written

from scenarios.k8s.command import main

pytestmark = [pytest.mark.attack, pytest.mark.soak, NEEDED]

OWN_RETRY_S = 60.0
"""Time that every kube-scheduler waits at least before it tries again by itself. [s]"""


@contextmanager
def ready(tmp_path: Path, capsys, *extender_flags: str):
    """A cluster with our namespace, rights and priorities, in which our scheduler runs."""
    with api_cluster(tmp_path) as cluster:
        cluster.apply(written(capsys, "--only", "namespace,rights"))
        for name, value in (("low", 1), ("high", 1000)):
            metadata = {"name": name}
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            cluster.apply([{**kind, "metadata": metadata, "value": value}])
        (config,) = written(capsys, "--only", "scheduler-config")
        with scheduled(cluster, config, *extender_flags) as url:
            yield cluster, url


def wait_bound(cluster, names) -> None:
    cluster.wait_until(lambda: set(names) <= set(cluster.bound()))


def num_preemptions(url: str) -> int:
    """Calls of the extender's verb preempt."""
    with urllib.request.urlopen(url.replace("/scheduler", "/metrics"), timeout=60.0) as answer:
        text = answer.read().decode()
    return sum(map(int, re.findall(r'requests_total{code="200",verb="preempt"} (\d+)', text)))


def test_a_gang_evicts_only_where_all_of_it_gets_in(tmp_path, capsys):
    """Three nodes of 16 full of 48 small pods: five pods of 16 evict none, three evict all."""
    small = [f"small-{number}" for number in range(48)]
    with ready(tmp_path, capsys) as (cluster, url):
        cluster.add_nodes(["a", "b", "c"], "dgx-2")
        for name in small:
            cluster.add_pod(name, 1, priority="low")
        wait_bound(cluster, small)
        five = [f"five-{rank}" for rank in range(5)]
        for name in five:
            cluster.add_pod(name, 16, priority="high", gang="five", gang_size="5")
        cluster.wait_until(lambda: num_preemptions(url) >= 5)
        cluster.add_nodes(["d"], "dgx-2")  # all are tried again, with room for four of them
        cluster.wait_until(lambda: num_preemptions(url) >= 10)
        cluster.wait_until(lambda: all(cluster.tried(name) for name in five))
        assert set(small) <= set(cluster.bound())
        assert not set(five) & set(cluster.bound())
        for name in five:
            cluster.delete_pod(name)
        cluster.call("DELETE", "/api/v1/nodes/d")
        three = [f"three-{rank}" for rank in range(3)]
        for name in three:
            cluster.add_pod(name, 16, priority="high", gang="three", gang_size="3")
        wait_bound(cluster, three)
        assert {cluster.bound()[name] for name in three} == {"a", "b", "c"}
        assert not set(small) & set(cluster.pods())


def test_a_promise_goes_with_the_last_pod_of_its_gang(tmp_path, capsys):
    """Twelve pods of 8 are promised all but two places; one is made, bound and deleted."""
    nodes = [f"n{number}" for number in range(7)]
    others = [f"other-{number}" for number in range(14)]
    with ready(tmp_path, capsys) as (cluster, _):
        cluster.add_nodes(nodes, "dgx-2")
        cluster.add_pod("first", 8, gang="g", gang_size="12")
        wait_bound(cluster, ["first"])
        cluster.add_pod("waits", 16)
        cluster.delete_pod("first")
        for name in others:
            cluster.add_pod(name, 8)
        cluster.delete_pod("waits")
        wait_bound(cluster, others)


def test_pods_hear_of_a_promise_that_ends(tmp_path, capsys):
    """One of two pods of a gang never comes; a pod that waits for its GPUs makes no call itself."""
    with ready(tmp_path, capsys, "--gang-timeout-s", "10") as (cluster, _):
        cluster.add_nodes(["a", "b"], "dgx-2")
        cluster.add_pod("first", 16, gang="g", gang_size="2")
        wait_bound(cluster, ["first"])
        cluster.add_pod("waits", 16)
        cluster.wait_until(lambda: bool(cluster.tried("waits")))
        assert "waits" not in cluster.bound()

        def told() -> list[str]:
            items = cluster.call("GET", "/api/v1/nodes")["items"]
            key = f"{PREFIX}/promises-ended"
            return [
                each["metadata"]["name"] for each in items if key in each["metadata"]["annotations"]
            ]

        cluster.wait_until(lambda: bool(told()))
        began_s = time.monotonic()
        wait_bound(cluster, ["waits"])
        assert not cluster.wakes_by_annotation or time.monotonic() - began_s < OWN_RETRY_S


def test_manifests_go_into_a_fresh_cluster_in_their_order(tmp_path, capsys):
    """What is missing is named before; then the API server takes each of them."""
    kinds = "namespace,config-map,rights,extender,service,scheduler,agent,pods"
    with api_cluster(tmp_path) as cluster:
        check = ["--check", "--kubeconfig", str(cluster.kubeconfig("admin"))]
        flags = ["manifests", "--simulate", "dgx-2", *check, "--only"]
        missing = "the cluster has no namespace topology: apply namespace.yaml first"
        assert_refused(main, [*flags, "rights"], f".*{missing}", capsys, unwritten=tmp_path / "no")
        gates = (
            "--feature-gates=GenericWorkload=true,GangScheduling=true on API server and scheduler, "
            "--runtime-config=scheduling.k8s.io/v1alpha2=true on the API server"
        )
        gang = [*flags, "gang", "--kubernetes", "1.36"]
        assert_refused(main, gang, f".*no PodGroup.*{gates}", capsys, unwritten=tmp_path / "no")
        documents = written(capsys, *check, "--only", kinds)
        assert documents[0]["kind"] == "Namespace"
        cluster.apply(documents)
        assert main([*flags, "rights"]) == 0
