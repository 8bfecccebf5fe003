"""A real API server and kube-scheduler on this machine with our manifests and our extender.

Programs are looked for in the folders of ``KUBE_BIN``, then of ``PATH``. Nodes are objects alone:
no kubelet runs, so that a bound pod is all that a pod comes to.
"""

import base64
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from k8s_cases import PREFIX
from processes import python, wait_until

from des.devices.k8s.node_text import node_patch
from des.devices.presets import simulated
from scenarios.k8s.command import main

_PATH = os.pathsep.join([os.environ.get("KUBE_BIN", ""), os.environ.get("PATH", "")])
PROGRAMS = {
    name: shutil.which(name, path=_PATH)
    for name in ("etcd", "kube-apiserver", "kube-scheduler", "openssl")
}
_MISSING = [name for name, path in PROGRAMS.items() if path is None]
NEEDED = pytest.mark.skipif(
    bool(_MISSING),
    reason=f"needs {', '.join(_MISSING)} in KUBE_BIN or PATH: docs/dev/performance.md says how",
)
ACCOUNTS = {
    "admin": ("admin", "system:masters"),
    "extender": ("system:serviceaccount:topology:topology-extender", ""),
    "scheduler": ("system:serviceaccount:topology:topology-scheduler", ""),
}
"""Who asks the API server, by token: the accounts of our manifests have the rights of those."""

_EVENT_VERSION = (1, 34)
"""From which on an extender is said to work: kube-scheduler wakes pods on annotations of nodes."""


def scheduler_version() -> tuple[int, int]:
    """Major and minor version of the kube-scheduler."""
    done = subprocess.run(
        [str(PROGRAMS["kube-scheduler"]), "--version"], capture_output=True, text=True, check=True
    )
    found = re.search(r"v(\d+)\.(\d+)", done.stdout)
    assert found, done.stdout
    return int(found[1]), int(found[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class RealCluster:
    """An API server that runs, and the folder of its files."""

    folder: Path
    port: int
    version: tuple[int, int]
    programs: list[subprocess.Popen[bytes]]

    @property
    def wakes_by_annotation(self) -> bool:
        """Whether this kube-scheduler tries again when an annotation of a node changes."""
        return self.version >= _EVENT_VERSION

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, with all programs running."""
        assert wait_until(lambda: is_so() or any(each.poll() is not None for each in self.programs))
        logs = {path.name: path.read_text("utf-8")[-1000:] for path in self.folder.glob("*.log")}
        assert [each.args for each in self.programs if each.poll() is not None] == [], logs

    def call(
        self, method: str, path: str, content: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Ask the API server as an administrator.

        Raises
        ------
        urllib.error.HTTPError
            If it refuses.
        """
        kind = "merge-patch+json" if method == "PATCH" else "json"
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}",
            data=None if content is None else json.dumps(content).encode(),
            method=method,
            headers={"Authorization": "Bearer admin", "Content-Type": f"application/{kind}"},
        )
        trust = ssl.create_default_context(cafile=str(self.folder / "apiserver.crt"))
        with urllib.request.urlopen(request, context=trust, timeout=60.0) as answer:
            return json.loads(answer.read())

    def kubeconfig(self, account: str) -> Path:
        """Access of an account."""
        authority = base64.b64encode((self.folder / "apiserver.crt").read_bytes()).decode()
        cluster = {
            "server": f"https://127.0.0.1:{self.port}",
            "certificate-authority-data": authority,
        }
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": account}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": account, "user": {"token": account}}],
        }
        path = self.folder / f"{account}.kubeconfig"
        path.write_text(json.dumps(content), "utf-8")
        return path

    def apply(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Make what documents say, in their order."""
        for each in documents:
            version, metadata = each["apiVersion"], each["metadata"]
            place = f"apis/{version}" if "/" in version else f"api/{version}"
            served = self.call("GET", f"/{place}")["resources"]
            (plural,) = {
                row["name"]
                for row in served
                if row["kind"] == each["kind"] and "/" not in row["name"]
            }
            inside = f"namespaces/{metadata['namespace']}/" if "namespace" in metadata else ""
            self.call("POST", f"/{place}/{inside}{plural}", each)

    def add_nodes(self, names: Sequence[str], kind: str) -> None:
        """Nodes of a kind of server, described as our node agent does it."""
        server = simulated(kind)
        room = {
            "cpu": "64",
            "memory": "512Gi",
            "pods": "110",
            "nvidia.com/gpu": str(server.num_gpus),
        }
        for name in names:
            metadata = {"name": name, **node_patch(server, PREFIX)["metadata"]}
            metadata["labels"] = {k: v for k, v in metadata["labels"].items() if v is not None}
            node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
            self.call("POST", "/api/v1/nodes", node)
            ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "no kubelet"}
            status = {"capacity": room, "allocatable": room, "conditions": [ready]}
            self.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": status})

    def add_pod(self, name: str, num_gpus: int, *, priority: str = "", **annotations: str) -> None:
        """A pod that waits for the scheduler; ``gang_size`` becomes the annotation gang-size."""
        gpus = {"nvidia.com/gpu": str(num_gpus)}
        named = {f"{PREFIX}/{key.replace('_', '-')}": text for key, text in annotations.items()}
        container = {"name": "c", "image": "none", "resources": {"limits": gpus}}
        spec = {
            "schedulerName": "topology-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **({"priorityClassName": priority} if priority else {}),
        }
        metadata = {"name": name, "annotations": named}
        self.call(
            "POST",
            "/api/v1/namespaces/default/pods",
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
        )

    def delete_pod(self, name: str) -> None:
        self.call("DELETE", f"/api/v1/namespaces/default/pods/{name}")

    def pods(self) -> dict[str, dict[str, Any]]:
        """All pods by name."""
        items = self.call("GET", "/api/v1/namespaces/default/pods")["items"]
        return {each["metadata"]["name"]: each for each in items}

    def bound(self) -> dict[str, str]:
        """Nodes of the pods that are bound, by name of the pod."""
        return {
            name: each["spec"]["nodeName"]
            for name, each in self.pods().items()
            if each["spec"].get("nodeName")
        }

    def tried(self, name: str) -> str:
        """Why the scheduler could not place a pod; empty where it has not tried, or could."""
        conditions = self.pods()[name].get("status", {}).get("conditions", ())
        return next(
            (each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), ""
        )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def program(folder: Path, name: str, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of Kubernetes; its log is in the folder."""
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([str(PROGRAMS[name]), *flags], stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def is_up(cluster: RealCluster) -> bool:
    """Whether an API server answers, and has made what every cluster has."""
    with suppress(OSError):  # it does not listen, or has no certificate yet
        kinds = cluster.call("GET", "/apis/scheduling.k8s.io/v1/priorityclasses")
        cluster.call("GET", "/api/v1/namespaces/kube-system")
        return bool(kinds["items"])
    return False


@contextmanager
def api_cluster(folder: Path) -> Iterator[RealCluster]:
    """A fresh cluster: etcd and API server on the loopback, nothing in it."""
    version, key = scheduler_version(), folder / "accounts.key"
    openssl = [str(PROGRAMS["openssl"]), "genrsa", "-out", str(key), "2048"]
    subprocess.run(openssl, check=True, capture_output=True)
    rows = [f"{token},{name},{name},{group}" for token, (name, group) in ACCOUNTS.items()]
    (folder / "tokens.csv").write_text("\n".join(rows), "utf-8")
    port = free_port()
    store, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    etcd = (
        *(f"--data-dir={folder / 'etcd'}", "--name=one", f"--initial-cluster=one={peers}"),
        *(f"--listen-client-urls={store}", f"--advertise-client-urls={store}"),
        *(f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"),
    )
    api = (
        *(f"--etcd-servers={store}", "--bind-address=127.0.0.1", f"--secure-port={port}"),
        *(f"--cert-dir={folder}", "--endpoint-reconciler-type=none"),
        *(f"--token-auth-file={folder / 'tokens.csv'}", "--authorization-mode=RBAC"),
        *(f"--service-account-key-file={key}", "--service-account-issuer=https://test"),
        *(f"--service-account-signing-key-file={key}", "--service-cluster-ip-range=10.0.0.0/24"),
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    )
    with program(folder, "etcd", *etcd), program(folder, "kube-apiserver", *api) as server:
        cluster = RealCluster(folder=folder, port=port, version=version, programs=[server])
        cluster.wait_until(lambda: is_up(cluster))
        yield cluster


def written(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, Any]]:
    """Documents of manifests that the command prints."""
    assert main(["manifests", "--simulate", "dgx-2", "--no-tls", *argv]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


@contextmanager
def scheduled(
    cluster: RealCluster, config: Mapping[str, Any], *extender_flags: str
) -> Iterator[str]:
    """Run our extender, whose URL is given, and a kube-scheduler by our configuration."""
    access = ("--kubeconfig", str(cluster.kubeconfig("extender")))
    words = ("-m", "scenarios.k8s", "extender", *access, "--port", "0", *extender_flags)
    with (
        (cluster.folder / "extender.log").open("w") as log,
        python(*words, stdout=subprocess.PIPE, stderr=log, text=True) as extender,
    ):
        line = extender.stdout.readline()
        assert line.startswith("listening at "), (cluster.folder / "extender.log").read_text()
        path, url = cluster.folder / "scheduler.json", line.split()[-1]
        path.write_text(json.dumps(_local(cluster, config, url)), "utf-8")
        flags = (f"--config={path}", "--bind-address=127.0.0.1", f"--secure-port={free_port()}")
        flags = (*flags, f"--cert-dir={cluster.folder}")
        with program(cluster.folder, "kube-scheduler", *flags) as scheduler:
            cluster.programs.append(scheduler)
            yield url


def _local(cluster: RealCluster, config: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Our configuration at addresses of this machine, in the form of the version that reads it."""
    (extender,) = config["extenders"]
    found = {
        **config,
        "clientConnection": {"kubeconfig": str(cluster.kubeconfig("scheduler"))},
        "extenders": [{**extender, "urlPrefix": url}],
    }
    if cluster.version < (1, 25):
        address = f"127.0.0.1:{free_port()}"
        found["apiVersion"] = "kubescheduler.config.k8s.io/v1beta1"
        found |= {"healthzBindAddress": address, "metricsBindAddress": address}
    return found
