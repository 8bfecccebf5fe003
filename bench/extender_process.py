"""An extender of 100 nodes in a process of its own, which the benchmark asks."""

import asyncio
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

from agents.devices.k8s.book import GpuBook, NodeGpus
from agents.devices.k8s.decider import Decider
from agents.devices.k8s.verbs import (
    Binding,
    begin_binding,
    end_binding,
    filter_answer,
    prioritize_answer,
)
from des.devices.cluster import Cluster, ClusterNode
from des.devices.k8s.wire import parse_wire
from des.devices.presets import simulated
from scenarios.k8s.http_parsing import HttpRequest
from scenarios.k8s.http_server import HttpResponse, HttpServer
from scenarios.k8s.service import ExtenderService

NUM_NODES = 100
_SEED = 24


def node_names() -> Iterator[str]:
    """Names of the nodes."""
    return (f"gpu-node-{number:03d}" for number in range(NUM_NODES))


@contextmanager
def extender() -> Iterator[tuple[int, BaseProcess]]:
    """Run the extender; gives its port and process."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    there.close()
    try:
        yield here.recv(), process
    finally:
        process.terminate()
        process.join()


def cpu_seconds(process: BaseProcess) -> float:
    """CPU time that a process has used. [s]"""
    text = Path(f"/proc/{process.pid}/stat").read_text("utf-8")
    ticks = text.rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _serve(there: Connection) -> None:
    asyncio.run(_serving(there))


async def _serving(there: Connection) -> None:
    service = ExtenderService(decider=Decider(book=_book()))
    service.known_at_s = time.time()

    def answer(request: HttpRequest) -> Any:
        if request.path == "/bench/pod":
            return _placed(service.decider, parse_wire(request.body))
        return service.answer(request)

    server = HttpServer(handler=answer)
    listening = await asyncio.get_running_loop().create_server(server.connection, "127.0.0.1", 0)
    there.send(listening.sockets[0].getsockname()[1])
    await listening.serve_forever()


def _book() -> GpuBook:
    rng = np.random.default_rng(_SEED)
    kinds = (simulated("dgx-h100"), simulated("dgx-1-v100"))
    nodes = [
        NodeGpus(
            name=name,
            server=kinds[number % 2],
            free=tuple(sorted(rng.permutation(8)[: int(rng.integers(2, 9))].tolist())),
        )
        for number, name in enumerate(node_names())
    ]
    book = GpuBook()
    book.replace_nodes(nodes, Cluster(nodes=tuple(ClusterNode(name=n.name) for n in nodes)))
    return book


def _placed(decider: Decider, body: Mapping[str, Any]) -> HttpResponse:
    """Filter, prioritize and bind a pod, then release it."""
    now_s = time.time()
    kept = filter_answer(decider, body, now_s)["NodeNames"]
    scores = prioritize_answer(decider, {**body, "NodeNames": kept}, now_s)
    best = max(scores, key=lambda row: row["Score"])["Host"]
    metadata = body["Pod"]["metadata"]
    call = {
        "PodName": metadata["name"],
        "PodNamespace": metadata["namespace"],
        "PodUID": metadata["uid"],
        "Node": best,
    }
    binding = begin_binding(decider, call, now_s)
    assert isinstance(binding, Binding)
    result = end_binding(decider, binding, "", now_s)
    decider.forget(metadata["uid"])
    return HttpResponse(status=200, body=json.dumps(result).encode())
