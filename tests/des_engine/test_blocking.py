"""Blocking sends: the worker that made a message does nothing until it has arrived."""

from dataclasses import replace

import pytest
from hypothesis import given
from strategies import FREE_BANDWIDTH_BYTES_PER_S, cases, plan, unit_workload, world

from des import Topology, Transport, simulate
from des.compiled.simulate import simulate_compiled

SECOND_AWAY = {"AB": (FREE_BANDWIDTH_BYTES_PER_S, 1.0), "BA": (FREE_BANDWIDTH_BYTES_PER_S, 1.0)}


def blocking(topology: Topology, *, sharing: str = "fifo") -> Topology:
    """The same world with senders that wait."""
    return replace(topology, transport=Transport(endpoints="blocking", sharing=sharing))


def starts_s(result):
    return {(span.stage, span.kind, span.microbatch): span.start_s for span in result.spans}


def test_a_sender_waits_for_its_message_by_hand():
    """F = 1, B = 2, a second each way. A: F0 at 0, free at 2; F1 at 2, free at 4.

    B: F0 at 2, B0 at 3, free at 6, when its gradient has arrived; F1, there since 4, at 6, B1 at 7.
    A: B0 at 6, B1 at 10. Where sends overlap, F1 of A starts at 1, that of B at 5, and all ends at
    11.
    """
    topology = world("AB", SECOND_AWAY)
    workload = unit_workload([(1.0, 2.0)] * 2, num_microbatches=2, message_bytes=1.0)

    stalled = simulate(blocking(topology), workload, plan(0, 1))
    assert starts_s(stalled) == {
        (0, "F", 0): 0.0, (0, "F", 1): 2.0, (0, "B", 0): 6.0, (0, "B", 1): 10.0,
        (1, "F", 0): 2.0, (1, "B", 0): 3.0, (1, "F", 1): 6.0, (1, "B", 1): 7.0,
    }  # fmt: skip
    assert stalled.makespan_s == 12.0
    assert simulate(topology, workload, plan(0, 1)).makespan_s == 11.0


@pytest.mark.parametrize("sharing", ["fifo", "fair", "none"])
def test_transfer_and_latency_stall_a_blocking_sender_alike(sharing):
    """Whether 3 s pass on the wire or in flight, as long as no two messages meet."""
    workload = unit_workload([(1.0, 2.0)] * 3, num_microbatches=6, message_bytes=3.0)
    makespans_s = [
        simulate(
            blocking(world("ABC", dict.fromkeys(("AB", "BA", "BC", "CB"), link)), sharing=sharing),
            workload,
            plan(0, 1, 2),
        ).makespan_s
        for link in ((1.0, 0.0), (FREE_BANDWIDTH_BYTES_PER_S, 3.0))
    ]
    assert makespans_s[0] == pytest.approx(makespans_s[1])


@given(case=cases(single_visit=True, fully=True))
def test_blocking_never_makes_a_pipeline_faster(case):
    """With a worker a device and a direct link a border, every time is a maximum of sums."""
    topology, workload, chosen = case
    overlapped = simulate(topology, workload, chosen).makespan_s

    stalled = simulate(blocking(topology), workload, chosen).makespan_s
    assert stalled >= overlapped * (1.0 - 1e-9)


@given(case=cases(single_visit=True))
def test_a_blocking_sender_starts_nothing_while_its_message_is_under_way(case):
    topology, workload, chosen = case
    result = simulate(blocking(topology), workload, chosen)

    for transfer in result.transfers:
        later = [span for span in result.spans if span.stage == transfer.stage]
        assert not any(transfer.start_s < span.start_s < transfer.arrival_s for span in later)


@given(case=cases(single_visit=True, fully=True))
def test_a_job_whose_trainer_blocks_is_as_one_in_a_world_that_blocks(case):
    """In both engines, whatever others on the links would do."""
    topology, workload, chosen = case
    habit = replace(chosen, sends="blocking")
    expected = simulate(blocking(topology), workload, chosen)
    overlapped = replace(topology, transport=Transport(endpoints="overlapped"))
    assert simulate(overlapped, workload, habit) == expected
    assert simulate_compiled(overlapped, workload, habit) == expected


def test_sends_are_of_two_kinds():
    with pytest.raises(ValueError, match="sends must be one of overlapped, blocking; got 'late'"):
        replace(plan(0), sends="late")
