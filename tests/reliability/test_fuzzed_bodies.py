"""Bodies of requests that are damaged: every service answers each of them, by a status it knows."""

import asyncio
import json
import os
import random
from pathlib import Path

import pytest
from k8s_cases import PAIRS, decider_of
from k8s_services import service_of
from mutations import mutated

from agents.cluster.table import policy_named
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.messages import read_message
from scenarios.cluster.rpc import REQUESTS, answers_of
from scenarios.cluster.service import ClusterService
from scenarios.cluster.store import SqliteStore
from scenarios.k8s.http_parsing import HttpRequest
from scenarios.k8s.service import BIND, VERBS

NUM_BODIES = int(os.environ.get("BODIES", "4000"))
"""Bodies of a soak, over all verbs."""

_VALUES = (None, True, -1, 0, 10**30, 1e308, "", "a" * 1000, "\ud800", [], {}, [[]], {"uid": {}})
RECORDED = {
    f"/scheduler/{pair['verb']}": pair
    for pair in PAIRS.values()
    if isinstance(pair["request"], dict)
}


def changed(value: object, rng: random.Random) -> object:
    """A body with one value, at any depth, in the place of another."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.15:
        return rng.choice(_VALUES)
    place = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
    other = value.copy()
    other[place] = changed(value[place], rng)
    return other


def answered(path: str, count: int, seed: str) -> dict[int, int]:
    """Number of answers by status to bodies that are recorded ones with a change or some."""
    service, counts = service_of(decider_of(RECORDED[path])), dict[int, int]()
    sample = RECORDED[path]["request"]
    for number in range(count):
        rng = random.Random(f"{path} {seed} {number}")
        body = json.dumps(changed(sample, rng)).encode()
        if rng.random() < 0.3:
            body = mutated(body, rng, "json")
        request = HttpRequest(method="POST", path=path, body=body, keep_alive=True)
        answer = service.answer(request)
        if asyncio.iscoroutine(answer):
            answer = asyncio.run(answer)
        counts[answer.status] = counts.get(answer.status, 0) + 1
        json.dumps(answer.body.decode())
    return counts


@pytest.mark.attack
@pytest.mark.parametrize("path", [*VERBS, BIND])
def test_damaged_bodies_are_answered(path):
    counts = answered(path, 150, "0")

    assert set(counts) <= {200, 400}
    assert counts[400]


CALLS = {
    "Report": {
        **{"node": "a", "incarnation": "x", "number": 1, "num_gpus": 8, "address": "127.0.0.1"},
        **{"free_ports": [4000], "ranks": [{"job": 1, "launch": 1, "rank": 0, "begun": 3}]},
    },
    "Submit": {"launch_command": "train", "launch_params": ["-x", 1, 2.5], "num_gpus": 2},
    "Follow": {"node": "a", "incarnation": "x", "digest": ""},
    "Status": {"version": "", "wait_s": 0.0},
    "Drain": {"node": "a", "takes_jobs": False},
    "Cancel": {"job": 1},
}
"""A good request of each method of a scheduler."""


async def called(count: int, seed: str, store: SqliteStore) -> dict[str, int]:
    """Number of answers and refusals of one scheduler to changed requests of all methods."""
    cluster = LiveCluster(policy=policy_named("fifo"), lease_s=1e-9)  # a follower waits for a third
    service = ClusterService(cluster, store, name="fifo", round_s=0.0)
    answers, counts = answers_of(service), {"answered": 0, "refused": 0}
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        method = rng.choice(list(CALLS))
        call = changed(CALLS[method], rng) if rng.random() < 0.5 else CALLS[method]
        body = json.dumps(call).encode()
        if rng.random() < 0.3:
            body = mutated(body, rng, "json")
        try:
            await answers[method](read_message(REQUESTS[method], body, method))
            counts["answered"] += 1
        except ValueError:
            counts["refused"] += 1
    return counts


def take_calls(count: int, seed: str, folder: Path) -> dict[str, int]:
    """Let a scheduler answer; what it has stored then can be read again."""
    store = SqliteStore(folder / "state.db")
    counts = asyncio.run(called(count, seed, store))
    again = LiveCluster(policy=policy_named("fifo"))
    again.restore(store.read())
    store.close()
    assert again.jobs
    return counts


@pytest.mark.attack
def test_a_scheduler_answers_or_refuses_damaged_requests(tmp_path):
    counts = take_calls(100, "0", tmp_path)

    assert min(counts.values()) > 5


@pytest.mark.soak
def test_a_scheduler_answers_or_refuses_four_thousand(tmp_path, capsys):
    counts = take_calls(NUM_BODIES, os.environ.get("SEED", "0"), tmp_path)
    with capsys.disabled():
        print(f"scheduler: {counts}")  # noqa: T201


@pytest.mark.soak
def test_four_thousand_damaged_bodies_are_answered(capsys):
    """``BODIES=100000 make soak ARGS=tests/reliability/test_fuzzed_bodies.py`` sends more."""
    paths = [*VERBS, BIND]
    for path in paths:
        counts = answered(path, NUM_BODIES // len(paths), os.environ.get("SEED", "0"))
        with capsys.disabled():
            print(f"{path}: {counts}")  # noqa: T201
        assert set(counts) <= {200, 400}
