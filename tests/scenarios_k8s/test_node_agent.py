"""Labels and annotations of the node agent, as the extender reads them; its errors."""

import pytest
import yaml
from api_server_cases import ApiCluster, api_server
from api_server_cases import kubeconfig as kubeconfig_of
from command_output import assert_refused
from processes import python, wait_until
from sysfs_trees import pcie_tree

from des.devices.k8s.node_text import read_server_annotation
from des.devices.presets import simulated
from scenarios.k8s.command import main

TOPO = "tests/golden/topo/08-rtx6000ada-pcie-node-sys-spaces.txt"
PREFIX = "topology.example.com"


@pytest.fixture
def cluster():
    return ApiCluster()


@pytest.fixture
def kubeconfig(cluster, tmp_path):
    """Kubeconfig of a running API server."""
    with api_server(cluster) as url:
        yield kubeconfig_of(tmp_path, url)


def argv(kubeconfig, *more: str) -> list[str]:
    return ["agent", "--node", "a/b", "--kubeconfig", str(kubeconfig), *more]


def test_a_node_is_patched_with_labels_and_annotation(cluster, kubeconfig):
    assert main(argv(kubeconfig, "--simulate", "dgx-1-v100", "--every-s", "0")) == 0

    ((path, kind, patch),) = cluster.patched
    assert path == "/api/v1/nodes/a%2Fb"
    assert kind == "application/merge-patch+json"
    labels = patch["metadata"]["labels"]
    assert labels[f"{PREFIX}/gpu-count"] == "8"
    server = read_server_annotation(patch["metadata"]["annotations"][f"{PREFIX}/topology"], "a")
    assert server.nvlinks == simulated("dgx-1-v100").nvlinks


def test_labels_that_are_not_known_any_more_are_removed(cluster, kubeconfig):
    assert main(argv(kubeconfig, "--file", TOPO, "--every-s", "0")) == 0

    labels = cluster.patched[0][2]["metadata"]["labels"]
    assert labels[f"{PREFIX}/gpu-model"] == "mixed" or labels[f"{PREFIX}/gpu-model"] is None
    assert labels[f"{PREFIX}/gpu-numa-nodes"] == "2"


def test_pcie_roots_come_from_sysfs(cluster, kubeconfig, tmp_path):
    rows = "".join(f"{n}, 00000000:{n + 1:02X}:00.0\n" for n in range(4))
    (tmp_path / "pci.txt").write_text(f"index, pci.bus_id\n{rows}", "utf-8")
    roots = {f"0000:{n + 1:02x}:00.0": f"pci0000:0{n // 2}" for n in range(4)}
    sysfs = pcie_tree(tmp_path, roots)
    files = f"{TOPO},{tmp_path / 'pci.txt'}"
    more = ("--file", files, "--sysfs", str(sysfs), "--every-s", "0")
    assert main(argv(kubeconfig, *more)) == 0

    text = cluster.patched[0][2]["metadata"]["annotations"][f"{PREFIX}/topology"]
    gpus = read_server_annotation(text, "a").gpus
    assert [gpu.pcie_root for gpu in gpus] == list(roots.values())


def test_it_writes_again_and_again_and_ends_when_told_to(cluster, kubeconfig):
    """The API server refuses at first; the next time comes soon."""
    cluster.refusal = (409, {"message": "conflict"})
    words = argv(kubeconfig, "--simulate", "dgx-1-v100", "--every-s", "0.05")
    with python("-m", "scenarios.k8s", *words) as process:
        assert wait_until(lambda: len(cluster.patched) > 1)
        cluster.refusal = None
        before = len(cluster.patched)
        assert wait_until(lambda: len(cluster.patched) > before + 1)
        assert process.poll() is None
        process.terminate()
        assert process.wait(600) != 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--simulate", "dgx-9"), "node a/b: .*dgx-9"),
        ((), "node a/b: exactly one of --file, --simulate, --here and --nvml"),
        (("--simulate", "dgx-1-v100"), "node a/b: API server: 403 no rights"),
    ],
)
def test_once_means_that_an_error_is_one(cluster, kubeconfig, more, message, capsys):
    cluster.refusal = (403, {"message": "no rights"})

    words = argv(kubeconfig, *more, "--every-s", "0")
    assert_refused(main, words, message, capsys, unwritten=kubeconfig.with_name("none"))


def test_the_manifest_runs_the_agent_with_flags_that_it_has(capsys):
    assert main(["manifests", "--simulate", "dgx-a100", "--only", "agent,rights"]) == 0
    found = list(yaml.safe_load_all(capsys.readouterr().out))
    (daemon,) = [each for each in found if each["kind"] == "DaemonSet"]
    pod = daemon["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert container["command"][:4] == ["python", "-m", "scenarios.k8s", "agent"]
    with pytest.raises(SystemExit):
        main(["agent", "--help"])
    known = capsys.readouterr().out
    assert all(word in known for word in container["command"] if word.startswith("--"))
    name = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    assert name in container["env"]
    assert pod["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    accounts = {each["metadata"]["name"] for each in found if each["kind"] == "ServiceAccount"}
    assert pod["serviceAccountName"] in accounts
    (role,) = [
        each for each in found if each["metadata"]["name"] == "topology-agent" and "rules" in each
    ]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]
