"""Page on Kubernetes: its walk-through runs as it stands, and prints what the page shows."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from api_server_cases import ApiCluster, api_server
from k8s_services import client
from processes import python

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")
SECTION = PAGE.split("## From two matrices")[1].split("\n## ")[0]
COMMANDS = re.findall(r"(?s)```sh\n(.*?)```", SECTION)
OUTPUTS = re.findall(r"(?s)```\n((?!\n).*?)```", re.sub(r"(?s)```sh\n.*?```", "", SECTION))
NAMES = ["node-a", "node-b"]


@pytest.fixture(scope="module")
def walk(tmp_path_factory) -> Path:
    """Folder in which the first three blocks of commands have run, and what they printed."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "tests").symlink_to(ROOT / "tests")
    words = f'exec {shlex.quote(sys.executable)} "$@"'
    (folder / "python").write_text(f"#!/bin/sh\n{words}\n", "utf-8")
    (folder / "python").chmod(0o755)
    environment = dict(os.environ) | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "astra-sim")]),
    }
    done = subprocess.run(
        ["sh", "-e", "-c", "".join(COMMANDS[:3])],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (folder / "printed").write_text(done.stdout, "utf-8")
    return folder


def test_the_page_has_the_blocks_that_are_run():
    assert len(COMMANDS) == 4
    assert len(OUTPUTS) == 3


def test_nodes_are_described_and_manifests_written(walk):
    assert (walk / "printed").read_text("utf-8") == OUTPUTS[0] + OUTPUTS[1]
    patch = json.loads((walk / "walk/node-a.json").read_text("utf-8"))
    assert "topology.example.com/topology" in patch["metadata"]["annotations"]


def write_calls(folder: Path, url: str) -> None:
    """Bodies that kube-scheduler would send for the pods of the manifests, and a kubeconfig."""
    pods = list(yaml.safe_load_all((folder / "manifests/pods.yaml").read_text("utf-8")))
    for rank, (pod, name) in enumerate(zip(pods, ("call.json", "call-1.json"), strict=True)):
        pod["metadata"]["uid"] = f"uid-{rank}"
        call = {"Pod": pod, "Nodes": None, "NodeNames": NAMES}
        bind = {
            "PodName": pod["metadata"]["name"],
            "PodNamespace": pod["metadata"]["namespace"],
            "PodUID": pod["metadata"]["uid"],
            "Node": "node-b",
        }
        (folder / name).write_text(json.dumps(call), "utf-8")
        (folder / f"bind-{rank}.json").write_text(json.dumps(bind), "utf-8")
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k"}}],
        "clusters": [{"name": "k", "cluster": {"server": url}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(config), "utf-8")


def test_the_gang_is_bound_as_the_page_shows(walk):
    """The page's port is replaced by a free one; its curl lines are sent as they stand."""
    begin, *calls = COMMANDS[3].strip().splitlines()
    words = shlex.split(begin.removesuffix(" &").replace("8888", "0"))[1:]
    cluster = ApiCluster()
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True, "cwd": walk}
    with api_server(cluster) as url:
        write_calls(walk / "walk", url)
        with python(*words, **options) as process:
            line = process.stdout.readline()
            port = int(line.split(":")[2].split("/")[0])
            found = [line.replace(str(port), "8888")]
            with client(port) as call:
                for each in calls:
                    *_, file, address = shlex.split(each)
                    path = "/" + address.split("/", 3)[3]
                    status, content = call("POST", path, (walk / file[1:]).read_bytes())
                    assert status == 200
                    found.append(json.dumps(content, separators=(",", ":")) + "\n")

    assert "".join(found) == OUTPUTS[2]
    assert [path.split("/")[-2] for path, _ in cluster.posted] == ["train-0", "train-1"]
