"""Damaged requests to what else listens: the explorer, a watch, a node for its ranks.

The agent of a node of Kubernetes does not listen; it gets damaged answers of an API server.
"""

import asyncio
import copy
import json
import os
import random
import re
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from api_server_cases import ApiCluster, api_of, api_server

pytest.importorskip("dash", reason='no dash; pip install "eastwest[explore]"')

from explorer_calls import SMALL, callbacks, sent
from mutations import mutated
from test_fuzzed_bodies import NUM_BODIES, changed

from scenarios.cluster.messages import RankOrder
from scenarios.cluster.rank_process import RankProcess
from scenarios.explore.app import Explorer, explorer_app
from scenarios.explore.calls import TimeLimit
from scenarios.k8s.http_server import HttpServer
from scenarios.watch.watcher import WatchMetrics

SEED = os.environ.get("SEED", "0")


def explorer_answers(count: int, seed: str, folder: Path) -> Counter[str]:
    """Statuses of the explorer to calls of its page, changed."""
    explorer = Explorer(settings=SMALL, runs=folder, limit=TimeLimit(0.5))
    client, counts = explorer_app(explorer).server.test_client(), Counter[str]()
    calls = callbacks(client)
    for number in range(count):
        rng = random.Random(f"explorer {seed} {number}")
        call = copy.deepcopy(rng.choice(calls))
        if rng.random() < 0.7:
            field = rng.choice([*call["inputs"], *call["state"]])
            field["value"] = changed([field["value"]], rng)
        else:
            call = changed(call, rng)
        body = json.dumps(call).encode()
        status, _ = sent(client, mutated(body, rng, "json") if rng.random() < 0.3 else body)
        counts[str(status)] += 1
    return counts


REQUESTS = (
    b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9105\r\nAccept: text/plain\r\n\r\n",
    b"HEAD /healthz HTTP/1.1\r\nHost: localhost:9105\r\n\r\n",
    b"POST /metrics HTTP/1.1\r\nHost: 127.0.0.1:9105\r\nContent-Type: application/json\r\n"
    b'Content-Length: 16\r\n\r\n{"status": [{}]}',
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1:9105\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n5\r\n[1, 2\r\n1\r\n]\r\n0\r\n\r\n",
)


async def watch_answers(count: int, seed: str, folder: Path) -> Counter[str]:
    """Statuses of a watch's first answers to requests, changed; ``none`` to a part of one."""
    server, counts = HttpServer(handler=WatchMetrics().answer), Counter[str]()
    path = folder / "watch"
    loop = asyncio.get_running_loop()
    async with await loop.create_unix_server(server.connection, path):
        for number in range(count):
            rng = random.Random(f"watch {seed} {number}")
            request = mutated(rng.choice(REQUESTS), rng, "text") * rng.choice((1, 1, 2))
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(request)
            writer.write_eof()
            answer = await reader.read()
            found = re.match(rb"HTTP/1\.1 (\d{3}) [A-Za-z ]+\r\n", answer)
            assert (found is None) == (answer == b""), (request, answer)
            counts["none" if found is None else found[1].decode()] += 1
            writer.close()
    assert server.connections == set()
    return counts


def an_order() -> RankOrder:
    """Order of a rank that asks for its lease."""
    where = {"gpu": 0, "gpus": [0], "master_address": "127.0.0.1", "master_port": 1}
    values = {"job": 1, "launch": 1, "rank": 0, "world_size": 1, "uses_lease": True, "folder": ""}
    return RankOrder(**values, **where, command=["true"])


@asynccontextmanager
async def lease_of(rank: RankProcess, path: Path):
    """Connection of a rank to its node."""
    async with await asyncio.start_unix_server(rank.answer, path):
        reader, writer = await asyncio.open_unix_connection(path)
        yield reader, writer
        writer.close()


async def lease_answers(count: int, seed: str, folder: Path) -> Counter[str]:
    """Answers of a node to the lines of a rank, changed; one that has no line gets none."""
    counts, good = Counter[str](), {"iteration": 3, "metrics": {"loss": 0.5, "norm": 1}}
    rank = RankProcess(an_order(), lambda *, is_urgent: None, folder / "log")
    async with lease_of(rank, folder / "lease") as (reader, writer):
        for number in range(count):
            rng = random.Random(f"lease {seed} {number}")
            body = json.dumps(changed(good, rng) if rng.random() < 0.5 else good).encode()
            if rng.random() < 0.5:
                body = mutated(body, rng, "json")
            writer.write(body.replace(b"\n", b" ") + b"\n")
            answer = (await reader.readline()).decode()
            assert answer[:-1].isprintable(), body
            assert answer[-1] == "\n", body
            counts["go" if answer == "go\n" else "refused"] += 1
    assert json.loads(rank.report.model_dump_json())["begun"] >= 3  # what it reports can be sent
    return counts


def agent_answers(count: int, seed: str, folder: Path) -> Counter[str]:
    """Errors of the agent's patches where an API server refuses them by changed documents."""
    cluster, counts = ApiCluster(), Counter[str]()
    good = {
        "kind": "Status",
        "status": "Failure",
        "message": "no rights",
        "code": 403,
        "details": {},
    }
    with api_server(cluster) as url:
        api = api_of(folder, url)
        for number in range(count):
            rng = random.Random(f"agent {seed} {number}")
            content = changed(good, rng)
            cluster.refusal = (rng.choice((200, 204, 301, 400, 403, 409, 422, 500, 599)), content)
            error = api.patch("/api/v1/nodes/a", {"metadata": {}})
            assert isinstance(error, str)
            assert (error == "") == (cluster.refusal[0] in (200, 204)), (cluster.refusal, error)
            counts["refused" if error else "taken"] += 1
    return counts


def answers_of(service: str, count: int, seed: str, folder: Path) -> Counter[str]:
    """Number of answers of a service by kind; all are of a kind that it knows."""
    if service == "explorer":
        counts = explorer_answers(count, seed, folder)
        assert set(counts) <= {"200", "204", "400"}
    elif service == "watch":
        counts = asyncio.run(watch_answers(count, seed, folder))
        assert set(counts) <= {"none", *WATCH_STATUSES}
    elif service == "node":
        counts = asyncio.run(lease_answers(count, seed, folder))
    else:
        counts = agent_answers(count, seed, folder)
    assert counts.total() == count
    return counts


WATCH_STATUSES = ("200", "400", "403", "404", "413", "415", "421", "431", "505")
SERVICES = ("explorer", "watch", "node", "agent")


@pytest.mark.attack
@pytest.mark.parametrize("service", SERVICES)
def test_damaged_requests_get_an_answer(service, tmp_path):
    counts = answers_of(service, 100 if service == "watch" else 40, "0", tmp_path)

    assert len(counts) > 1


@pytest.mark.soak
@pytest.mark.parametrize("service", SERVICES)
def test_four_thousand_damaged_requests_get_an_answer(service, tmp_path, capsys):
    """``BODIES=100000 make soak ARGS=tests/reliability/test_fuzzed_services.py`` sends more."""
    counts = answers_of(service, NUM_BODIES, SEED, tmp_path)
    with capsys.disabled():
        print(f"{service}: {counts.total()} requests, {dict(sorted(counts.items()))}")  # noqa: T201
