"""Recorded pairs of calls and answers, by the functions that answer."""

import pytest
from k8s_cases import (
    PAIRS,
    assert_filtered,
    assert_matches,
    assert_scored,
    decider_of,
    pod_filtered_before,
)

from agents.devices.k8s.verbs import (
    begin_binding,
    end_binding,
    filter_answer,
    preempt_answer,
    prioritize_answer,
)
from des.devices.k8s.wire import parse_wire

OF_VERB = {
    verb: [name for name, pair in PAIRS.items() if pair["verb"] == verb and pair["request"]]
    for verb in ("filter", "prioritize", "bind", "preempt")
}


ANSWERS = {
    "filter": (filter_answer, assert_filtered),
    "prioritize": (prioritize_answer, assert_scored),
    "preempt": (preempt_answer, lambda found, pair: assert_matches(found, pair["expect"]["body"])),
}
"""Functions that answer, and those that compare."""


@pytest.mark.parametrize(
    ("verb", "name"), [(verb, name) for verb in ANSWERS for name in OF_VERB[verb]]
)
def test_answer(verb, name):
    (answer, check), pair = ANSWERS[verb], PAIRS[name]
    check(answer(decider_of(pair), pair["request"], 0.0), pair)


@pytest.mark.parametrize("name", OF_VERB["bind"])
def test_bind(name):
    pair = PAIRS[name]
    decider = decider_of(pair)
    filter_answer(decider, pod_filtered_before(pair), 0.0)

    binding = begin_binding(decider, pair["request"], 1.0)

    effect = pair["expect"]["side_effect"]
    if effect is None:
        assert isinstance(binding, str)
        assert binding
        assert not decider.book.grants
        return
    assert not isinstance(binding, str)
    assert f"POST {binding.path}" == effect["api_call"]
    assert binding.object_to_post() == effect["api_body"]
    assert end_binding(decider, binding, "", 1.0) == pair["expect"]["body"]
    (grant,) = decider.book.grants.values()
    assert len(grant.gpus) == effect["gpus_taken_on_node"]


@pytest.mark.parametrize(
    "case",
    [case for case in PAIRS["e10-bad-requests"]["expect"]["cases"] if case["status"] == 400],
    ids=lambda case: case["body"],
)
def test_bodies_that_are_none_are_refused(case):
    decider = decider_of(PAIRS["e10-bad-requests"])

    with pytest.raises(ValueError, match=r"body|ExtenderArgs"):
        filter_answer(decider, parse_wire(case["body"].encode()), 0.0)
