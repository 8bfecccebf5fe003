"""Start-up of TCP: the closed form against recorded packets, delays of messages by hand."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from strategies import plan, unit_workload, world

from des import NO_CORRECTIONS, Corrections, simulate
from des.compiled.many.each import simulate_each
from des.compiled.many.job import domain_figures, job_on
from des.compiled.many.simulation import simulate_many
from des.costs.start_up import fresh_connection_s, rested_bytes, start_up_on, start_up_s
from des.plan.transport_law import TransportLaw

FLOWS = Path(__file__).parents[1] / "golden/ns3_flows.json"
RECORDED = {
    case["name"]: case
    for case in json.loads(FLOWS.read_text())["cases"]
    if len(case["flows"]) == 1
    and not case["wan_links"][0]["packet_loss_probability"]
    and not case["wan_links"][0]["bandwidth_changes"]
}
"""Single messages over fresh connections, as ns-3 3.44 recorded them."""

DOUBLING = TransportLaw(
    connections="fresh", first_window_bytes=1.0, segment_bytes=1e-12, start_up_round_trips=1.0
)
"""Windows of 1, 2, 4, ... bytes behind a handshake."""


@pytest.mark.parametrize("case", RECORDED)
def test_the_closed_form_is_within_a_tenth_of_recorded_packets(case):
    tcp, link = RECORDED[case]["tcp"], RECORDED[case]["wan_links"][0]
    rate, latency_s = link["bandwidth_bps"] / 8, link["one_way_delay_s"]

    found_s = fresh_connection_s(
        RECORDED[case]["flows"][0]["size_bytes"],
        bandwidth_bytes_per_s=min(rate, tcp["send_buffer_bytes"] / (2 * latency_s)),
        latency_s=latency_s,
        first_window_bytes=tcp["initial_cwnd_segments"] * tcp["segment_size_bytes"],
    )

    (recorded_s,) = RECORDED[case]["completion_s"]
    assert len(RECORDED) == 5
    assert found_s == pytest.approx(recorded_s, rel=0.1)


@pytest.mark.parametrize(
    ("num_bytes", "delay_s"),
    [(1.0, 1.0), (2.0, 1.875), (3.0, 1.875), (4.0, 2.625), (8.0, 3.125), (1e3, 3.125)],
)
def test_a_fresh_connection_waits_for_each_round(num_bytes, delay_s):
    """8 bytes/s, 1 s: rounds of 1, 2 and 4 bytes leave 7/8, 6/8 and 4/8 s of the link idle."""
    figures = start_up_on(DOUBLING, 8.0, 1.0)

    assert start_up_s(figures, 0.0, num_bytes) == pytest.approx(delay_s)
    assert start_up_s(figures, 100.0, num_bytes) == pytest.approx(delay_s)


def test_a_reused_connection_keeps_its_window():
    figures = start_up_on(replace(DOUBLING, connections="reused"), 8.0, 1.0)

    assert start_up_s(figures, 0.0, 3.0) == pytest.approx(1.875)
    assert start_up_s(figures, 3.0, 4.0) == 0.0  # its window is 1 + 3 bytes
    assert start_up_s(figures, 3.0, 5.0) == pytest.approx(0.5)
    assert start_up_s(figures, 7.0, 1e3) == pytest.approx(0.0, abs=1e-9)


def test_windows_that_grow_slowly_leave_more_rounds_idle():
    """1 byte/s and 1 s: windows of 1/2, 3/4 and 9/8 leave 1/2 and 1/4 s of the link idle."""
    figures = start_up_on(replace(DOUBLING, growth=0.5, start_up_round_trips=0.0), 1.0, 1.0)

    assert start_up_s(figures, 0.0, 0.5) == 0.0
    assert start_up_s(figures, 0.0, 1.25) == pytest.approx(0.5)
    assert start_up_s(figures, 0.0, 50.0) == pytest.approx(0.75)


def test_a_connection_keeps_the_last_window_that_it_has_filled():
    """Windows of 1, 2, 4 bytes: the next message has 8 at once, 4 after an idle round."""
    figures = start_up_on(replace(DOUBLING, connections="reused"), 8.0, 1.0)

    assert rested_bytes(figures, 0.0, 7.0) == 3.0
    assert rested_bytes(figures, 3.0, 4.0) == 3.0  # a small message does not lower it
    assert rested_bytes(figures, 0.0, 0.1) == 1.0  # but for rounding up to a byte it is open


def test_a_reused_connection_rests_between_messages():
    """The second message comes 2 s behind the first of 7 bytes, so 7 bytes need two rounds."""
    reused = Corrections(transport=replace(DOUBLING, connections="reused"))
    calm = replace(JOB, num_microbatches=2, message_bytes=7.0)
    slow = replace(calm, layers=tuple(replace(one, forward_flops=9.0) for one in calm.layers))

    results = [
        [one.arrival_s for one in simulate(PAIR, slow, PIPELINE, each).transfers if not one.link]
        for each in (NO_CORRECTIONS, reused)
    ]

    assert [late - soon for soon, late in zip(*results, strict=True)] == pytest.approx([2.625, 0.5])


def test_paced_windows_losses_and_efficiency_add_up():
    paced = start_up_on(replace(DOUBLING, is_paced=True), 8.0, 1.0)
    assert start_up_s(paced, 0.0, 2.0) == pytest.approx(1.875 + 0.5 * 0.75)

    lossy = replace(DOUBLING, recovery_round_trips=4.0, recovery_after_products=2.0)
    figures = start_up_on(lossy, 8.0, 1.0)
    assert start_up_s(figures, 0.0, 16.0) - start_up_s(figures, 0.0, 15.0) == pytest.approx(4.0)

    halved = start_up_on(replace(DOUBLING, efficiency=0.5), 8.0, 1.0)
    assert start_up_s(halved, 0.0, 16.0) == pytest.approx(3.125 + 2.0)


PAIR = world("AB", {"AB": (8.0, 0.5), "BA": (8.0, 0.5)})
JOB = unit_workload([(1, 1)] * 2, num_microbatches=3, message_bytes=8.0)
PIPELINE = plan(0, 1, schedule="gpipe")
FRESH = Corrections(transport=DOUBLING)
REUSED = Corrections(transport=replace(DOUBLING, connections="reused"))


def test_fresh_connections_start_up_concurrently_and_reused_ones_in_turn():
    ideal, fresh, reused = (
        [one.arrival_s for one in simulate(PAIR, JOB, PIPELINE, each).transfers if not one.link]
        for each in (NO_CORRECTIONS, FRESH, REUSED)
    )

    assert [late - soon for late, soon in zip(fresh, ideal, strict=True)] == pytest.approx(
        [3.125] * 3
    )
    assert reused[0] - ideal[0] == pytest.approx(3.125)
    assert reused[2] - reused[1] == pytest.approx(1.0)  # one behind the other at the link's rate


@pytest.mark.parametrize("found", [FRESH, REUSED])
def test_many_plans_are_delayed_as_one_is(found):
    plans = [plan(0, 1), plan(1, 0), plan(0, 0)]

    expected = [simulate(PAIR, JOB, one, found).makespan_s for one in plans]

    assert simulate_many([PAIR], JOB, plans, found).tolist() == [expected]


def test_figures_of_pairs_have_the_delay_of_fresh_connections_and_refuse_others():
    assert job_on(PAIR, JOB, FRESH).latency_s[0, 1] == pytest.approx(0.5 + 3.125)
    with pytest.raises(ValueError, match=r"corrections\.transport must be fresh.* got reused"):
        job_on(PAIR, JOB, REUSED)
    common = domain_figures(JOB, PAIR.domains, FRESH)
    with pytest.raises(ValueError, match=r"simulate each: corrections\.transport must be none"):
        simulate_each(None, common, JOB, [], FRESH)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"connections": "warm"}, "connections must be one of reused, fresh; got 'warm'"),
        ({"first_window_bytes": 0.0}, "first_window_bytes"),
        ({"segment_bytes": math.inf}, "segment_bytes"),
        ({"start_up_round_trips": -1.0}, "start_up_round_trips"),
        ({"growth": 0.001}, "growth must be from 0.01 to 1, got 0.001"),
        ({"efficiency": 0.0}, "efficiency must be above 0 and at most 1, got 0.0"),
        ({"is_paced": 1}, "is_paced must be True or False, got 1"),
        ({"recovery_after_products": math.nan}, "recovery_after_products"),
    ],
)
def test_figures_of_a_law_are_checked(fields, match):
    with pytest.raises(ValueError, match=match):
        replace(DOUBLING, **fields)


def test_a_law_survives_as_plain_content():
    assert Corrections.from_plain(FRESH.plain()) == FRESH
    assert "transport" not in NO_CORRECTIONS.plain()
    with pytest.raises(ValueError, match="transport must be a TransportLaw or None, got 'cubic'"):
        Corrections(transport="cubic")
