"""Manifests in a cluster that has nothing yet: who runs as whom, and what it has to serve first."""

import io
import re
from contextlib import contextmanager, redirect_stdout
from functools import cache
from pathlib import Path

import pytest
import yaml
from api_server_cases import ApiCluster, api_server, kubeconfig
from command_output import assert_refused

from scenarios.k8s.command import main
from scenarios.k8s.manifest_settings import GANG_APIS
from scenarios.k8s.manifests import MANIFESTS

CONFIGURATIONS = {"KubeSchedulerConfiguration", "KubeletConfiguration"}
FLAGS = {
    "1.35": "GenericWorkload=true,GangScheduling=true .*scheduling.k8s.io/v1alpha1=true",
    "1.36": "GenericWorkload=true,GangScheduling=true .*scheduling.k8s.io/v1alpha2=true",
    "1.37": "GenericWorkload=true .*scheduling.k8s.io/v1beta1=true",
}


@cache
def written(*argv: str) -> list[dict]:
    """Documents that the command prints."""
    shown = io.StringIO()
    with redirect_stdout(shown):
        assert main(["manifests", "--simulate", "dgx-a100", *argv]) == 0
    return list(yaml.load_all(shown.getvalue(), yaml.CSafeLoader))


def pod_specs(document: dict) -> list[dict]:
    """Specifications of the pods that a document makes."""
    if document["kind"] == "Pod":
        return [document["spec"]]
    template = document.get("spec", {}).get("template")
    return [template["spec"]] if isinstance(template, dict) else []


@contextmanager
def fresh(tmp_path: Path, documents: list[dict], without: set[str] = frozenset()):
    """A cluster that serves the kinds of documents but for some; gives its kubeconfig."""
    cluster = ApiCluster()
    for each in documents:
        version = each["apiVersion"]
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        served = cluster.documents.setdefault(path, {"kind": "APIResourceList", "resources": []})
        if each["kind"] not in without:
            served["resources"].append({"kind": each["kind"]})
    with api_server(cluster) as url:
        yield cluster, ["--check", "--kubeconfig", str(kubeconfig(tmp_path, url))]


@pytest.mark.attack
@pytest.mark.parametrize("version", GANG_APIS)
def test_a_kubelet_can_tell_that_nobody_is_root(version):
    """By numbers: it does not know names in images. The image has the numbers of the manifests."""
    dockerfile = Path("Dockerfile").read_text("utf-8")
    (user,) = re.findall(r"^USER (.*)$", dockerfile, re.MULTILINE)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    contexts = [
        container.get("securityContext", {})
        for document in written("--kubernetes", version)
        for spec in pod_specs(document)
        for container in spec["containers"]
    ]
    strict = [each for each in contexts if each.get("runAsNonRoot")]

    assert strict
    assert {f"{each['runAsUser']}:{each['runAsGroup']}" for each in strict} == {user}


@pytest.mark.attack
@pytest.mark.parametrize("only", [(), *((name,) for name in MANIFESTS)])
def test_a_namespace_is_there_before_what_is_in_it(only, tmp_path, capsys):
    """The first document makes it; manifests without it are refused until the cluster has it."""
    chosen = ("--only", *only) if only else ()
    documents = written(*chosen)
    inside = {each.get("metadata", {}).get("namespace") for each in documents} - {None}
    with fresh(tmp_path, documents) as (cluster, check):
        argv = ["manifests", "--simulate", "dgx-a100", *chosen, *check]
        if not only:
            assert documents[0]["kind"] == "Namespace"
            assert inside <= {documents[0]["metadata"]["name"], "kube-system"}
            cluster.documents["/api/v1/namespaces/kube-system"] = {"kind": "Namespace"}
        elif inside:
            missing = "the cluster has no namespace topology: apply namespace.yaml first"
            assert_refused(main, argv, f".*{missing}", capsys, unwritten=tmp_path / "none")
            for name in inside:
                cluster.documents[f"/api/v1/namespaces/{name}"] = {"kind": "Namespace"}
        assert main(argv) == 0


@pytest.mark.attack
@pytest.mark.parametrize(
    ("version", "kind"),
    [
        *((version, kind) for version in FLAGS for kind in ("Workload", "ResourceSlice")),
        ("1.36", "PodGroup"),
        ("1.37", "PodGroup"),
        ("1.34", "PrometheusRule"),
    ],
)
def test_kinds_that_a_cluster_lacks_are_named_with_what_it_needs(version, kind, tmp_path, capsys):
    """Before anything is applied, in one line."""
    documents = written("--kubernetes", version)
    out = tmp_path / "out"
    with fresh(tmp_path, documents, without={kind}) as (cluster, check):
        cluster.documents["/api/v1/namespaces/kube-system"] = {"kind": "Namespace"}
        flags = ["--simulate", "dgx-a100", "--kubernetes", version, "--out", str(out), *check]
        needs = f": it needs .*{FLAGS[version]}" if kind in {"Workload", "PodGroup"} else "$"
        message = rf"--check: the cluster has no {kind} of \S+{needs}"
        assert_refused(main, ["manifests", *flags], message, capsys, unwritten=out)


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path, capsys):
    with fresh(tmp_path, []) as (cluster, check):
        cluster.set_up(False)
        argv = ["manifests", "--simulate", "dgx-a100", *check]
        assert_refused(main, argv, "--check: ", capsys, unwritten=tmp_path / "none")
    argv = ["manifests", "--simulate", "dgx-a100", "--check"]
    assert_refused(main, argv, "--check and --kubeconfig", capsys, unwritten=tmp_path / "none")
