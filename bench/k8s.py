"""Answers of the scheduler's extender over HTTP: rates of one core, times under 50 clients."""

import json
import selectors
import socket
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.extender_process import NUM_NODES, cpu_seconds, extender, node_names
from bench.report import Section, column, one_table
from bench.timing import Effort

NUM_CLIENTS = 50
TARGETS = {
    "prioritize, names": ("1,000 (3,000)", "50 (20)"),
}
NOTE = (
    f"{NUM_NODES} nodes, half DGX H100 and half DGX-1 with other free GPUs each; the pod asks for "
    "4 GPUs; connections are kept, each client sends its next request once it has the answer. The "
    "server has one thread, its CPU time is that of its process. "
    "A pod is filtered, prioritized and bound to the best node (no API server is waited for), then "
    "released: the state changes twice for each, so nothing but fits of equal nodes is kept."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersRow:
    """Rate of one kind of request, and times under all clients."""

    request: str = column("request")
    kilobytes: float = column("body [kB]", ",.1f")
    per_s: float = column("answers per s", ",.0f")
    per_cpu_s: float = column("per s of CPU", ",.0f")
    target: str = column("target (stretch) [per s]")
    median_ms: float = column("median of 50 clients [ms]", ",.2f")
    p99_ms: float = column("p99 [ms]", ",.2f")
    p99_target: str = column("target (stretch) [ms]")


def measure(effort: Effort) -> Section:
    """Ask a process that answers, first by 4 clients, then by 50."""
    turn_s = 0.05 if effort.is_quick else effort.turn_s
    num_rounds = effort.num_rounds
    rows = []
    with extender() as (port, process):
        for name, paths, bodies in _requests():
            requests = [_request(path, body) for path, body in zip(paths, bodies, strict=True)]
            _times_s(port, requests, 1, turn_s)  # what is kept is filled
            rates, cpu_rates, times_s = [], [], []
            for _ in range(num_rounds):
                begin_s, cpu_s = time.perf_counter(), cpu_seconds(process)
                count = len(_times_s(port, requests, 4, turn_s))
                rates.append(count / (time.perf_counter() - begin_s))
                cpu_rates.append(count / max(1e-2, cpu_seconds(process) - cpu_s))
                times_s += _times_s(port, requests, NUM_CLIENTS, turn_s)
            rate_target, p99_target = TARGETS.get(name, ("", ""))
            rows.append(
                AnswersRow(
                    request=name,
                    kilobytes=sum(map(len, bodies)) / 1e3,
                    per_s=float(np.median(rates)),
                    per_cpu_s=float(np.median(cpu_rates)),
                    target=rate_target,
                    median_ms=1e3 * float(np.median(times_s)),
                    p99_ms=1e3 * float(np.quantile(times_s, 0.99)),
                    p99_target=p99_target,
                )
            )
    return one_table("k8s", "Extender of kube-scheduler", rows, NOTE)


def _requests() -> list[tuple[str, list[str], list[bytes]]]:
    """Names, paths and bodies of the requests that are timed."""
    names = list(node_names())
    by_name = {"Pod": _pod(), "Nodes": None, "NodeNames": names}
    whole = {"metadata": {}, "items": [_node(name) for name in names]}
    by_node = {"Pod": _pod(), "Nodes": whole, "NodeNames": None}
    paths = [f"/scheduler/{verb}" for verb in ("filter", "prioritize")]
    rows: list[tuple[str, list[str], list[Any]]] = [
        ("prioritize, names", paths[1:], [by_name]),
        ("filter, names", paths[:1], [by_name]),
        ("prioritize, whole nodes", paths[1:], [by_node]),
        ("filter, whole nodes", paths[:1], [by_node]),
        ("a pod placed and released, names", ["/bench/pod"], [by_name]),
    ]
    return [(name, of, [json.dumps(each).encode() for each in bodies]) for name, of, bodies in rows]


def _pod() -> dict[str, Any]:
    sizes = {"cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "4"}
    return {
        "metadata": {
            "name": "train-0",
            "namespace": "ml",
            "uid": "0b6f5d0e-6d0a-4a38-9a55-3f1a3c1d7a01",
            "labels": {"app": "train", "job-name": "train"},
            "annotations": {"topology.example.com/policy": "best-effort"},
        },
        "spec": {
            "schedulerName": "topology-scheduler",
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/train:1",
                    "resources": {"limits": sizes, "requests": sizes},
                    "env": [{"name": f"NCCL_{n}", "value": str(n)} for n in range(20)],
                }
            ],
        },
        "status": {"phase": "Pending", "qosClass": "Guaranteed"},
    }


def _node(name: str) -> dict[str, Any]:
    """Node of about 4 kB, with conditions and images as a small cluster has them."""
    sizes = {"cpu": "192", "memory": "2000Gi", "pods": "110", "nvidia.com/gpu": "8"}
    return {
        "metadata": {"name": name, "labels": {f"example.com/label-{n}": name for n in range(20)}},
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "capacity": sizes,
            "allocatable": sizes,
            "conditions": [
                {"type": f"Condition{n}", "status": "False", "reason": "KubeletHasNoReason"}
                for n in range(5)
            ],
            "images": [{"names": [f"registry.example.com/image-{n}:1"]} for n in range(40)],
        },
    }


def _request(path: str, body: bytes) -> bytes:
    kind = "Content-Type: application/json"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _times_s(port: int, requests: Sequence[bytes], num_clients: int, turn_s: float) -> list[float]:
    """Times of answers that some clients get within a turn, each on a connection of its own."""
    selector, times_s = selectors.DefaultSelector(), []
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(num_clients)]
    begun = dict.fromkeys(clients, 0.0)
    counts = dict.fromkeys(clients, 0)

    def send(client: socket.socket) -> None:
        begun[client] = time.perf_counter()
        client.sendall(requests[counts[client] % len(requests)])
        counts[client] += 1

    for client in clients:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(client, selectors.EVENT_READ)
        send(client)
    end_s = time.perf_counter() + turn_s
    open_ = set(clients)
    client_of = {client.fileno(): client for client in clients}
    while open_:
        for key, _ in selector.select():
            client = client_of[key.fd]
            _read_answer(client)
            now_s = time.perf_counter()
            times_s.append(now_s - begun[client])
            if now_s < end_s:
                send(client)
            else:
                open_.discard(client)
                selector.unregister(client)
    for client in clients:
        with closing(client):
            pass
    selector.close()
    return times_s


def _read_answer(client: socket.socket) -> None:
    """Read one whole answer.

    Raises
    ------
    RuntimeError
        If it is no answer of status 200.
    """
    found = client.recv(1 << 20)
    while b"\r\n\r\n" not in found:
        found += client.recv(1 << 20)
    head, _, body = found.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(f"no answer: {head[:100]!r}")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    left = length - len(body)
    while left > 0:
        left -= len(client.recv(min(left, 1 << 20)))
