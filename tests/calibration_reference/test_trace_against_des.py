"""Traces run on the engine take as long as `des` says, wherever both follow the same rules."""

from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from sharing import FEW
from strategies import world
from trace_cases import ENDPOINTS, engine, even_pipelines, makespan_s, pipelines, replicated, shared
from traces_and_des import assert_equal, in_a_row, measured

from calibration.cases.case import Measurement, PlacementCase
from calibration.fit.prediction import predict
from calibration.reference.astra_config import as_seen
from calibration.reference.chakra_trace import build_traces


@given(case=pipelines(endpoints=["overlapped"]))
def test_pipelines_take_as_long_where_messages_overlap(case: PlacementCase):
    """Any placement, routes of several hops and devices of several stages included."""
    traces = build_traces(case)

    assert_equal(case, traces, engine(case, traces))


@given(case=pipelines(endpoints=["one_in_flight"], fully=True))
def test_pipelines_take_as_long_with_one_message_in_flight(case: PlacementCase):
    """The one communication slot of an NPU is the endpoint of a domain."""
    traces = build_traces(case)

    assert_equal(case, traces, engine(case, traces))


@given(case=even_pipelines())
def test_who_is_first_at_the_same_time_is_settled_alike(case: PlacementCase):
    """Several stages on a device that get ready together, in every world of equal figures."""
    traces = build_traces(case)

    assert_equal(case, traces, engine(case, traces))


@settings(max_examples=examples(FEW))
@given(case=replicated())
def test_replicas_take_as_long(case: PlacementCase):
    """Buckets that overlap with passes and with each other, each a ring over the domains."""
    traces = build_traces(case)

    assert_equal(case, traces, engine(case, traces))


def assert_equal_unaware(case: PlacementCase) -> None:
    """Compare where messages never meet, in the world that such a network can express."""
    seen = as_seen(case, "unaware")
    traces = build_traces(seen)

    assert_equal(seen, traces, engine(seen, traces, "unaware"))


@given(case=pipelines(endpoints=["overlapped"]) | even_pipelines(endpoints=["overlapped"]))
def test_pipelines_take_as_long_where_messages_never_meet(case: PlacementCase):
    """Any placement, also where links are busy: both simulators run without queues."""
    assert_equal_unaware(case)


@given(case=pipelines(endpoints=["one_in_flight"], fully=True))
def test_pipelines_take_as_long_with_one_message_in_flight_that_meets_no_other(case: PlacementCase):
    assert_equal_unaware(case)


@settings(max_examples=examples(FEW))
@given(case=replicated())
def test_replicas_take_as_long_where_messages_never_meet(case: PlacementCase):
    """Buckets side by side, each ring with the links to itself."""
    assert_equal_unaware(case)


def test_where_messages_never_meet_they_may_overtake_by_hand():
    """GPipe with two microbatches on A and B; 20 bytes take 2 + 1 s forth and back.

    A computes F at 0 and 1; the messages leave at 1 and 2, are at B at 4 and 5, which computes F at
    4 and 5 and B at 6 and 8; gradients are at A at 11 and 13, which ends at 15. In turn the second
    message is at B at 6, and A ends at 16.
    """
    links = dict.fromkeys(("AB", "BA"), (10.0, 1.0))
    case = in_a_row(0, 1, schedule="gpipe")
    case = replace(
        case,
        topology=world("AB", links),
        workload=replace(case.workload, num_microbatches=2),
    )
    seen = as_seen(case, "unaware")
    traces = build_traces(seen)

    assert (predict(case).makespan_s, predict(seen).makespan_s) == (16.0, 15.0)
    assert makespan_s(engine(seen, traces, "unaware")) == pytest.approx(15.0, abs=1e-7)


@settings(max_examples=examples(FEW))
@given(case=replicated(endpoints=ENDPOINTS) | shared(replicated(endpoints=ENDPOINTS)))
def test_no_exchange_waits_for_one_that_waits_for_it(case: PlacementCase):
    """With a single slot, too, where all must join in one order; no rank ends before its passes."""
    traces = build_traces(case)
    result = engine(case, traces)

    assert len(result.ranks) == case.num_npus
    assert all(rank.exposed_communication_cycles <= rank.finish_cycles for rank in result.ranks)
    assert len(result.spans[0]) == len(traces.traces[0].nodes)


def test_exposed_time_by_hand():
    """GPipe with two microbatches on two domains of a layer each; links take 2 + 1 and 1 + 2 s.

    A computes F at 0 and 1, B has them at 4 and 6, computes F then, and B at 7 and 9. Their
    gradients are at A at 9 + 1 + 2 = 12 and 14, so A ends at 16 of which it computes 6 s; B's last
    message is delivered at 14.
    """
    case = in_a_row(0, 1, schedule="gpipe")
    case = replace(case, workload=replace(case.workload, num_microbatches=2))
    traces = build_traces(case)
    result = engine(case, traces)

    expected = Measurement(makespan_s=16.0, communication_bytes=80.0, exposed_s=(10.0, 8.0, 0.0))
    assert predict(case) == expected
    found = measured(case, traces, result)
    assert found.makespan_s == pytest.approx(16.0, abs=1e-7)
    assert found.exposed_s == pytest.approx((10.0, 8.0, 0.0), abs=1e-7)


def test_a_relay_takes_a_slot_and_frees_that_of_the_sender_early():
    """One message in flight: here the sender waits for the next domain, in `des` for the last.

    So over several hops the engine is quicker; the writer cannot mend that, as nothing but a
    message of its own would tell the sender of the arrival.
    """
    case = in_a_row(0, 2, endpoints="one_in_flight", schedule="gpipe")
    traces = build_traces(case)

    found, predicted = makespan_s(engine(case, traces)), predict(case).makespan_s
    overlapped = in_a_row(0, 2, schedule="gpipe")

    assert predict(overlapped).makespan_s < found < predicted
