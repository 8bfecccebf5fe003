"""Bodies of requests that are damaged: every service answers each of them, by a status it knows."""

import asyncio
import json
import os
import random

import pytest
from k8s_cases import PAIRS, decider_of
from k8s_services import service_of
from mutations import mutated

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


@pytest.mark.soak
def test_four_thousand_damaged_bodies_are_answered(capsys):
    """``BODIES=100000 make soak ARGS=tests/reliability/test_fuzzed_bodies.py`` sends more."""
    paths = [*VERBS, BIND]
    for path in paths:
        counts = answered(path, NUM_BODIES // len(paths), os.environ.get("SEED", "0"))
        with capsys.disabled():
            print(f"{path}: {counts}")  # noqa: T201
        assert set(counts) <= {200, 400}
