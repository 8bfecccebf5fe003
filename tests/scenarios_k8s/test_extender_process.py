"""The command: started with a state file, asked as kube-scheduler asks, told to end."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
import yaml
from command_output import assert_refused, examples_of, help_of
from k8s_cases import (
    PAIRS,
    TOPOLOGIES,
    args,
    assert_filtered,
    decoded_scores,
    flat_cluster,
    pod,
    whole_nodes,
)
from k8s_services import client
from processes import python, wait_until

from agents.devices.k8s.verbs import filter_answer, prioritize_answer
from scenarios.k8s.command import main
from scenarios.k8s.extender_config import Config
from scenarios.k8s.running import service_of
from scenarios.k8s.sources import FileSource
from scenarios.k8s.state_file import read_state

PAIR = PAIRS["e02-filter-node-names"]


def write_state(path: Path, state: dict) -> None:
    """State file, put into its place at once."""
    servers = []
    for name, row in state.items():
        server = {"name": name}
        if row["topology"] is not None:
            server |= {"file": f"{row['topology']}.txt", "free": row["free"]}
        servers.append(server)
    new = path.with_suffix(".new")
    new.write_text(yaml.safe_dump({"servers": servers}), "utf-8")
    os.replace(new, path)


@pytest.fixture(scope="module")
def extender(tmp_path_factory) -> Iterator[tuple[int, Path, subprocess.Popen]]:
    """Port of a running extender, its state file, and its process."""
    folder = tmp_path_factory.mktemp("extender")
    for path in TOPOLOGIES.glob("*.txt"):
        shutil.copy(path, folder)
    state = folder / "state.yaml"
    write_state(state, PAIR["state"])
    words = ("-m", "scenarios.k8s", "extender", "--state", str(state), "--port", "0")
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with python(*words, "--poll-s", "0.02", **options) as process:
        line = process.stdout.readline()
        assert line.startswith("listening at http://127.0.0.1:"), line
        yield int(line.split(":")[2].split("/")[0]), state, process


def test_it_answers_as_kube_scheduler_reads(extender):
    port, _, _ = extender
    with client(port) as call:
        status, found = call("POST", "/scheduler/filter", PAIR["request"])
    assert status == 200
    assert_filtered(found, PAIR)
    names = PAIRS["e06-prioritize"]["request"]["NodeNames"]
    connection = HTTPConnection("127.0.0.1", port, timeout=600.0)
    body = json.dumps(PAIRS["e06-prioritize"]["request"])
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/scheduler/prioritize", body, headers)
    response = connection.getresponse()
    scores = decoded_scores(response.read(), names)
    connection.close()

    assert response.headers["X-State-Age-Seconds"]
    assert scores["gpu-a"] > scores["gpu-b"] > scores["gpu-c"]


def test_a_changed_state_is_read_and_a_damaged_one_is_not(extender):
    port, path, _ = extender
    other = {"only": PAIR["state"]["gpu-a"]}

    def kept() -> list[str]:
        with client(port) as call:
            status, found = call("POST", "/scheduler/filter", args(pod("p", 4), ["only", "gpu-a"]))
        assert status == 200
        return found["NodeNames"]

    def failures() -> int:
        with client(port) as call:
            text = call("GET", "/metrics")[1]
        return int(re.search(r"(?m)^eastwest_extender_state_failures_total (\d+)", text)[1])

    assert kept() == ["gpu-a"]
    write_state(path, other)
    assert wait_until(lambda: kept() == ["only"])
    path.write_text("servers: [{name: half", "utf-8")
    assert wait_until(lambda: failures() > 0)
    assert kept() == ["only"]
    write_state(path, PAIR["state"])
    assert wait_until(lambda: kept() == ["gpu-a"])


def test_it_ends_on_sigterm(extender):
    """Last of the module: it ends the process of the others."""
    _, _, process = extender
    process.send_signal(signal.SIGTERM)

    assert process.wait(600) == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "one of --state, --kubeconfig and --in-cluster must be given"),
        (["--state", "none.yaml"], "none.yaml: cannot be read"),
        (["--state", "x", "--port", "70000"], "--port must be from 0 to 65535"),
        (["--state", "x", "--tls-cert", "c"], "--tls-cert and --tls-key must be given together"),
        (["--state", "x", "--client-ca", "c"], "--client-ca needs --tls-cert"),
        (["--state", "x", "--max-body-bytes", "4194305"], "max_body_bytes must be a whole number"),
        (["--state", "x", "--gang-timeout-s", "0"], "gang_timeout_s must be positive"),
        (["--state", "x", "--default-policy", "near"], "--default-policy must be one of none"),
        (["--state", "x", "--policy-annotation", "near"], "policy_annotation must be PREFIX/NAME"),
        (["--in-cluster"], "needs KUBERNETES_SERVICE_HOST"),
    ],
)
def test_wrong_flags_are_refused(argv, message, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    assert_refused(main, ["extender", *argv], message, capsys, unwritten=tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("servers: []", "at least one"),
        ("servers: [{name: a, free: [0]}]", "server a: one of file and simulate must be given"),
        ("servers: [{name: a, simulate: dgx-2x}]", "dgx-2x"),
        ("servers: [{name: a, simulate: dgx-2, free: [16]}]", "must be numbers of its GPUs"),
        ("servers: [{name: a}, {name: a}]", "differ|twice"),
        ("servers: [{name: a, gpus: 4}]", "unknown key"),
        ("servers: [{name: a}]\npods: [{uid: p, node: b}]", "pod p: node must be one of"),
        ("topology: 40\nnumber: 2", "servers"),
        ("servers: [{name: a}]\ngangs: [{name: g, size: 0}]", "gangs.*size"),
    ],
)
def test_wrong_state_files_are_refused(text, message, tmp_path, capsys):
    path = tmp_path / "state.yaml"
    path.write_text(text, "utf-8")

    argv = ["extender", "--state", str(path)]
    assert_refused(main, argv, f".*state.yaml: .*({message})", capsys, unwritten=tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topologie: 4", "did you mean 'topology'"),
        ("numa: x", "numa must be a number"),
        ("numa: -1", "numa must be finite and not negative"),
        ("[]", "must be a mapping"),
    ],
)
def test_wrong_weights_are_refused(text, message, tmp_path, capsys):
    path = tmp_path / "weights.yaml"
    path.write_text(text, "utf-8")

    argv = ["extender", "--state", "x", "--weights", str(path)]
    assert_refused(main, argv, f".*weights.yaml: .*{message}", capsys, unwritten=tmp_path / "no")


def test_a_state_that_changes_while_it_is_read_is_refused(tmp_path):
    """The file is a pipe; its writer puts another file into its place before it ends."""
    path = tmp_path / "state.yaml"
    os.mkfifo(path)
    (tmp_path / "new").write_text("servers: [{name: b}]", "utf-8")

    def write() -> None:
        with path.open("w", encoding="utf-8") as pipe:
            os.replace(tmp_path / "new", path)
            pipe.write("servers: [{name: a}]")

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.raises(ValueError, match=r"state\.yaml: changed while it was read"):
        read_state(path)
    writer.join(600.0)

    assert [node.name for node in read_state(path).nodes] == ["b"]


def test_a_state_file_says_sizes_of_gangs(tmp_path):
    path = tmp_path / "state.yaml"
    gangs = [{"namespace": "ml", "name": "g", "size": 2}]
    servers = [{"name": name, "simulate": "dgx-1-v100"} for name in "ab"]
    path.write_text(yaml.safe_dump({"servers": servers, "gangs": gangs}), "utf-8")
    service = service_of(Config(state=path))
    FileSource(path=path, service=service, gpu=None, poll_s=1.0).begin()

    filter_answer(service.decider, args(pod("p", 8, gang="g"), ["a", "b"]), 0.0)

    (promise,) = service.decider.book.promises.values()
    assert sorted(slot.node for slot in promise.slots) == ["a", "b"]


def test_weights_resources_and_annotation_come_from_the_flags(tmp_path):
    weights = tmp_path / "weights.json"
    weights.write_text('{"topology": 0, "numa": 0, "balance": 0, "preference": 1}', "utf-8")
    config = Config(
        state=tmp_path / "state.yaml",
        weights=str(weights),
        resources=("huawei.com/Ascend910B",),
        policy_annotation="example.org/numa",
        default_policy="single-numa",
        gang_timeout_s=7.0,
        annotate_gpus=True,
    )
    service = service_of(config)
    decider = service.decider

    assert decider.weights.parts == (0.0, 0.0, 0.0, 1.0, 0.0)
    assert decider.keys.resources == ("huawei.com/Ascend910B",)
    assert (decider.keys.default_policy, decider.gang_timeout_s) == ("single-numa", 7.0)
    assert service.annotates_gpus
    decider.book.replace_nodes(whole_nodes(["a", "b"]), flat_cluster(["a", "b"]))
    of_pod = pod("p", 0)
    of_pod["metadata"]["annotations"] = {"example.org/preferred-nodes": "b"}
    of_pod["spec"]["containers"][0]["resources"]["limits"] = {"huawei.com/Ascend910B": 2}
    scores = prioritize_answer(decider, args(of_pod, ["a", "b"]), 0.0)
    assert [row["Score"] for row in scores] == [1, 10]


def test_help_names_the_subcommands_and_examples(capsys):
    shown = help_of(main, capsys)

    assert "extender" in shown
    assert "manifests" in shown
    assert examples_of(shown, "scenarios.k8s")
