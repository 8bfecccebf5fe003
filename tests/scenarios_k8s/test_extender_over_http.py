"""Recorded pairs over HTTP, refusals, fuzzed bodies, age of the state, metrics."""

import asyncio
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from k8s_cases import (
    PAIRS,
    args,
    assert_filtered,
    assert_matches,
    assert_scored,
    bind_args,
    book_of,
    decider_of,
    grant_of,
    pod,
    pod_filtered_before,
    whole_nodes,
)
from k8s_services import client, running, service_of
from prometheus_client.parser import text_string_to_metric_families

from agents.devices.k8s.decider import Decider
from scenarios.k8s.http_parsing import HttpRequest
from scenarios.k8s.http_server import HttpResponse

VERBS = ("filter", "prioritize", "preempt", "bind")


@pytest.fixture
def posted():
    """Objects that were posted, by path."""
    return {}


@pytest.fixture
def poster(posted):
    async def post(path: str, content: dict) -> str:
        posted[path] = content
        return ""

    return post


@pytest.mark.parametrize("name", PAIRS)
def test_recorded_pairs(name, poster, posted):
    pair = PAIRS[name]
    decider = decider_of(pair)
    with running(service_of(decider, poster=poster)) as port, client(port) as call:
        if pair["request"] is None:
            for case in pair["expect"]["cases"]:
                path = case.get("path", pair["http"]["path"])
                assert call(case["method"], path, case["body"])[0] == case["status"]
            return
        if pair["verb"] == "bind":
            call("POST", "/scheduler/filter", pod_filtered_before(pair))
        status, found = call(pair["http"]["method"], pair["http"]["path"], pair["request"])

    assert status == pair["expect"]["status"]
    check = {"filter": assert_filtered, "prioritize": assert_scored}.get(pair["verb"])
    if check is not None:
        check(found, pair)
        return
    assert_matches(found, pair["expect"]["body"])
    effect = pair["expect"].get("side_effect")
    wanted = {effect["api_call"].removeprefix("POST "): effect["api_body"]} if effect else {}
    assert posted == wanted


@pytest.fixture(scope="module")
def service():
    """Service without an API server, and its book with one pod."""
    decider = Decider(book=book_of(whole_nodes(["a", "b"])))
    decider.book.grant(grant_of("held", "a", [0, 7]))
    return service_of(decider)


def answer(service, verb: str, body: bytes, method: str = "POST") -> HttpResponse:
    request = HttpRequest(method=method, path=f"/scheduler/{verb}", body=body, keep_alive=True)
    found = service.answer(request)
    return found if isinstance(found, HttpResponse) else asyncio.run(found)


KEYS = (
    *("Pod", "nodes", "NodeNames", "items", "metadata", "spec", "containers", "UID", "a", "Node"),
    *("resources", "limits", "nvidia.com/gpu", "Pods", "NodeNameToMetaVictims"),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text("a1é", max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
BODIES = st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode())


@given(body=BODIES, verb=st.sampled_from(VERBS))
def test_any_body_is_answered_or_refused(service, body, verb):
    """No crash, and no 200 without content."""
    found = answer(service, verb, body)

    assert found.status in (200, 400)
    assert found.body
    if found.status == 200:
        assert isinstance(json.loads(found.body), dict | list)


@given(
    at=st.integers(0, 600), bytes_=st.binary(min_size=1, max_size=3), verb=st.sampled_from(VERBS)
)
def test_damaged_calls_are_answered_or_refused(service, at, bytes_, verb):
    text = json.dumps(
        {**args(pod("p", 2, policy="single-numa"), ["a", "x"]), **bind_args("p", "a")}
    ).encode()
    found = answer(service, verb, text[: at % len(text)] + bytes_ + text[at % len(text) + 1 :])

    assert found.status in (200, 400)
    assert found.body


@pytest.mark.parametrize(
    "body",
    [
        *("[]", "null", "1", '"x"', "{", "", "{}", '{"Pod":{},"Nodes":[],"NodeNames":null}'),
        '{"Pod":{},"NodeNames":[1]}',
        '{"Pod":[],"NodeNames":["a"]}',
        '{"Pod":{},"Nodes":{"items":[7]}}',
        '{"Pod":{"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"0.5"}}}]}},'
        '"NodeNames":["a"]}',
        '{"Pod":{},"NodeNames":["a"],"x":NaN}',
        "[" * 100_000,
        '{"Pod":' + "9" * 5000 + "}",
    ],
    ids=lambda body: body[:24],
)
def test_bodies_that_are_no_call_are_refused(service, body):
    for verb in ("filter", "prioritize", "preempt", "bind"):
        assert answer(service, verb, body.encode()).status == 400


def test_without_an_api_server_bind_says_so_and_holds_nothing(service):
    answer(service, "filter", json.dumps(args(pod("q", 2), ["a"])).encode())
    found = answer(service, "bind", json.dumps(bind_args("q", "a")).encode())

    assert found.status == 200
    assert "no API server" in json.loads(found.body)["Error"]
    assert "q" not in service.decider.book.grants


def test_before_the_first_state_nothing_is_answered():
    service = service_of(Decider(book=book_of([])))
    service.known_at_s = None

    assert answer(service, "filter", b"{}").status == 503
    assert service.readiness().status == 503
    assert service.health().status == 200


def test_reasons_say_the_age_of_an_old_state():
    service = service_of(Decider(book=book_of(whole_nodes(["a"]))))
    service.known_at_s, service.clock = 0.0, lambda: 600.0
    found = answer(service, "filter", json.dumps(args(pod("p", 9), ["a"])).encode())

    reason = json.loads(found.body)["FailedAndUnresolvableNodes"]["a"]
    assert reason == "has 8 GPUs, the pod needs 9 (by a state 600 s old)"
    assert ("X-State-Age-Seconds", "600.000") in found.headers


def test_metrics_count_requests_and_show_pods(service):
    answer(service, "prioritize", json.dumps(args(pod("p", 2), ["a", "b"])).encode())
    answer(service, "nothing", b"{}")
    text = service.metrics_page().body.decode()

    found = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

    def value(name: str, **labels: str) -> float:
        return found[f"eastwest_{name}", tuple(sorted(labels.items()))]

    assert value("extender_requests_total", verb="prioritize", code="200") >= 1
    assert value("extender_requests_total", verb="other", code="404") >= 1
    times, of_pod = "extender_request_seconds", {"namespace": "ml", "pod": "held", "node": "a"}
    count = value(f"{times}_count", verb="prioritize")
    assert 1 <= count == value(f"{times}_bucket", verb="prioritize", le="+Inf")
    assert value(f"{times}_sum", verb="prioritize") > 0.0
    assert value("pod_numa_nodes", **of_pod) == 2
    assert value("pod_all_reduce_seconds", **of_pod) > 0.0
    assert value("extender_state_age_seconds") >= 0.0
    assert value("extender_nodes") == 2
    assert value("extender_gpus_free") == 14
    assert not [name for name, _ in found if name.endswith("_created")]
    assert all(re.match(r"# (HELP|TYPE) ", line) for line in text.splitlines() if line[0] == "#")
