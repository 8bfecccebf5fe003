"""Page on Kubernetes: its walk-through runs as it stands, and prints what the page shows."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "cluster.md").read_text("utf-8")
SECTION = PAGE.split("### From two matrices")[1].split("\n### ")[0]
COMMANDS = re.findall(r"(?s)```sh\n(.*?)```", SECTION)
OUTPUTS = re.findall(r"(?s)```\n((?!\n).*?)```", re.sub(r"(?s)```sh\n.*?```", "", SECTION))
NEEDED = pytest.mark.skipif(
    shutil.which("curl") is None or find_spec("kubernetes") is None,
    reason="needs the program curl and the extra k8s",
)


def free_ports(number: int) -> list[int]:
    """Ports below those that systems give away by themselves."""
    found: list[int] = []
    for port in count(10_000 + os.getpid() % 20_000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
        if len(found) == number:
            break
    return found


@pytest.fixture(scope="module")
def walk(tmp_path_factory) -> tuple[Path, str]:
    """Folder in which all blocks of commands have run, with free ports, and what they printed."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "tests").symlink_to(ROOT / "tests")
    words = f'exec {shlex.quote(sys.executable)} "$@"'
    (folder / "python").write_text(f"#!/bin/sh\n{words}\n", "utf-8")
    (folder / "python").chmod(0o755)
    environment = dict(os.environ) | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "astra-sim")]),
    }
    extender, api = map(str, free_ports(2))
    script = "".join(COMMANDS).replace("8888", extender).replace("6443", api)
    done = subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "walk", done.stdout.replace(extender, "8888")


@NEEDED
def test_the_commands_print_what_the_page_shows(walk):
    assert len(COMMANDS) == 3
    assert len(OUTPUTS) == 2
    assert walk[1] == "".join(OUTPUTS)


@NEEDED
def test_nodes_are_described_by_labels_and_annotation(walk):
    patch = json.loads((walk[0] / "node-a.json").read_text("utf-8"))

    assert patch["metadata"]["labels"]["topology.example.com/gpu-count"] == "8"
    assert "topology.example.com/topology" in patch["metadata"]["annotations"]


@NEEDED
def test_both_pods_are_bound_to_different_gpus_of_one_node(walk):
    lines = (walk[0] / "bound.txt").read_text("utf-8").splitlines()
    pods = [line.split("/")[6] for line in lines]
    gpus = [re.search(r"gpus': '([0-9,]+)'", line)[1].split(",") for line in lines]

    assert pods == ["train-0", "train-1"]
    assert all(" -> node-b " in line for line in lines)
    assert sorted(gpus[0] + gpus[1]) == list("01234567")
