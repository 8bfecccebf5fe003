"""The simulator against hand-computed cases of binary fractions, so comparisons are exact."""

import dataclasses

import pytest
from hand_pipelines import ASYMMETRIC, times
from strategies import free_world, plan, unit_workload, world

from des import Corrections, Movement, Transfer, UniformLaw, build_workload, read_topology, simulate
from des.dynamics.link_course import Weather
from des.worlds import EAST_CENTRAL_WEST


def test_gpipe_on_two_stages_by_hand():
    """Forward 1 s, backward 2 s, two microbatches.

    A: F0 0-1, F1 1-2. A->B: F0 leaves 1-1.5, there at 1.75; F1 leaves 2-2.5, there at 2.75.
    B: F0 1.75-2.75, F1 2.75-3.75, B0 3.75-5.75, B1 5.75-7.75.
    B->A: B0 leaves 5.75-7.75, there at 8.25; B1 leaves 7.75-9.75, there at 10.25.
    A: B0 8.25-10.25, B1 10.25-12.25.
    """
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=2, message_bytes=4.0)

    result = simulate(ASYMMETRIC, workload, plan(0, 1, schedule="gpipe"))
    assert times(result, 0) == {
        "F0": (0, 1),
        "F1": (1, 2),
        "B0": (8.25, 10.25),
        "B1": (10.25, 12.25),
    }
    assert times(result, 1) == {
        "F0": (1.75, 2.75),
        "F1": (2.75, 3.75),
        "B0": (3.75, 5.75),
        "B1": (5.75, 7.75),
    }
    assert set(result.transfers) == {
        Transfer(0, 0, "F", 0, 1, 1.5, 1.75),
        Transfer(0, 0, "F", 1, 2, 2.5, 2.75),
        Transfer(1, 1, "B", 0, 5.75, 7.75, 8.25),
        Transfer(1, 1, "B", 1, 7.75, 9.75, 10.25),
    }
    assert result.makespan_s == 12.25


def test_1f1b_on_two_stages_by_hand():
    """Forward 1 s, backward 2 s, three microbatches; A: F0 F1 B0 F2 B1 B2, B: F0 B0 F1 B1 F2 B2.

    A: F0 0-1, F1 1-2; there at 1.75 and 2.75 as before.
    B: F0 1.75-2.75, B0 2.75-4.75, F1 4.75-5.75, B1 5.75-7.75.
    B->A: B0 leaves 4.75-6.75, there at 7.25; B1 leaves 7.75-9.75, there at 10.25.
    A: B0 7.25-9.25, F2 9.25-10.25, B1 10.25-12.25; F2 leaves 10.25-10.75, there at 11.
    B: F2 11-12, B2 12-14; B2 leaves 14-16, there at 16.5. A: B2 16.5-18.5.
    """
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=3, message_bytes=4.0)

    result = simulate(ASYMMETRIC, workload, plan(0, 1))
    assert times(result, 0) == {
        "F0": (0, 1),
        "F1": (1, 2),
        "B0": (7.25, 9.25),
        "F2": (9.25, 10.25),
        "B1": (10.25, 12.25),
        "B2": (16.5, 18.5),
    }
    assert times(result, 1) == {
        "F0": (1.75, 2.75),
        "B0": (2.75, 4.75),
        "F1": (4.75, 5.75),
        "B1": (5.75, 7.75),
        "F2": (11, 12),
        "B2": (12, 14),
    }
    assert result.makespan_s == 18.5
    assert [link.busy_s for link in result.links] == [1.5, 6.0]


def test_messages_queue_for_the_bandwidth_while_latencies_overlap():
    """Forward 1 s, but 4 s on the wire and 16 s of latency.

    F0 leaves 1-5, there at 21; F1 is ready at 2, leaves 5-9 and is there at 25, 4 s after F0.
    """
    topology = world("AB", {"AB": (1.0, 16.0), "BA": (1e300, 0.0)})
    workload = unit_workload([(1, 1), (1, 1)], num_microbatches=2, message_bytes=4.0)

    result = simulate(topology, workload, plan(0, 1, schedule="gpipe"))
    forwards = [transfer for transfer in result.transfers if transfer.kind == "F"]
    assert [transfer[4:] for transfer in forwards] == [(1, 5, 21), (5, 9, 25)]
    assert times(result, 1)["F0"] == (21, 22)
    assert times(result, 1)["F1"] == (25, 26)


def test_two_hops_store_and_forward_by_hand():
    """A to C over B: 8 bytes, 1 s + 0.5 s, then 4 s + 0.25 s; the second hop queues.

    Hop 1: F0 1-2, at B 2.5; F1 2-3, at B 3.5. Hop 2: F0 2.5-6.5, at C 6.75; F1 6.5-10.5, at 10.75.
    """
    fast = (1e300, 0.0)
    topology = world("ABC", {"AB": (8.0, 0.5), "BC": (2.0, 0.25), "CB": fast, "BA": fast})
    workload = unit_workload([(1, 1), (1, 1)], num_microbatches=2, message_bytes=8.0)

    result = simulate(topology, workload, plan(0, 2, schedule="gpipe"))
    forwards = {transfer for transfer in result.transfers if transfer.kind == "F"}
    assert forwards == {
        Transfer(0, 0, "F", 0, 1, 2, 2.5),
        Transfer(0, 0, "F", 1, 2, 3, 3.5),
        Transfer(2, 0, "F", 0, 2.5, 6.5, 6.75),
        Transfer(2, 0, "F", 1, 6.5, 10.5, 10.75),
    }
    assert times(result, 1)["F0"] == (6.75, 7.75)
    assert times(result, 1)["F1"] == (10.75, 11.75)


def test_stages_of_one_domain_take_turns_by_hand():
    """Pattern A, B, A, free links, forward and backward 1 s, gpipe, two microbatches.

    A: F0 of stage 0 at 0-1, F1 at 1-2. B: F0 1-2, F1 2-3. A again: F0 of stage 2 at 2-3, F1 3-4,
    B0 4-5, B1 5-6. B: B0 5-6, B1 6-7. A: B0 6-7, B1 7-8.
    """
    workload = unit_workload([(1, 1)] * 3, num_microbatches=2)

    result = simulate(free_world(2), workload, plan(0, 1, 0, schedule="gpipe"))
    assert times(result, 0) == {"F0": (0, 1), "F1": (1, 2), "B0": (6, 7), "B1": (7, 8)}
    assert times(result, 1) == {"F0": (1, 2), "F1": (2, 3), "B0": (5, 6), "B1": (6, 7)}
    assert times(result, 2) == {"F0": (2, 3), "F1": (3, 4), "B0": (4, 5), "B1": (5, 6)}


def test_a_busy_domain_serves_who_comes_first():
    """Pattern A, B, A; forwards 4, 1 and 2 s, gpipe, three microbatches.

    Stage 0 asks for F1 at 4 and is served to 8; stage 2 asks for F0 at 5, ahead of F2 of stage 0
    at 8: 8-10, then F2 10-14. Stage 2 asks for F1 at 10: 14-16; F2 passes B 14-15 and then waits.
    """
    workload = unit_workload([(4, 1), (1, 1), (2, 1)], num_microbatches=3)

    result = simulate(free_world(2), workload, plan(0, 1, 0, schedule="gpipe"))
    upper, lower = times(result, 0), times(result, 2)
    assert [upper[name] for name in ("F0", "F1", "F2")] == [(0, 4), (4, 8), (10, 14)]
    assert [lower[name] for name in ("F0", "F1", "F2")] == [(8, 10), (14, 16), (16, 18)]


def test_a_transfer_across_a_border_of_moving_bandwidth_by_hand():
    """Segments of 2 s; from 1 s: the rest of segment 0, all of segment 1, 3 bytes of segment 2."""
    law = UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=2.0)
    movement = Movement(law=law, seed=3)
    topology = dataclasses.replace(
        world("AB", {"AB": (4.0, 8.0), "BA": (4.0, 8.0)}), movement=movement
    )
    pieces = [Weather(movement, topology.links).piece(0, 2.0 * segment) for segment in range(3)]
    rates = [4.0 * bandwidth_factor for bandwidth_factor, _, _ in pieces]
    num_bytes = 1.0 * rates[0] + 2.0 * rates[1] + 3.0
    workload = unit_workload([(1, 1), (1, 1)], num_microbatches=1, message_bytes=num_bytes)

    forward = simulate(topology, workload, plan(0, 1)).transfers[0]
    assert forward.start_s == 1.0
    assert forward.end_s == pytest.approx(4.0 + 3.0 / rates[2], rel=1e-12)
    assert 4.0 < forward.end_s < 6.0
    latency_s = 8.0 * pieces[2][1]
    assert forward.arrival_s == pytest.approx(forward.end_s + latency_s, rel=1e-12)


def test_the_overhead_of_a_message_by_hand():
    """0.5 s before each message: forward 1, 0.5 + 1 on the way, forward 1, backward 1, back."""
    topology = world("AB", {"AB": (4.0, 0.0), "BA": (4.0, 0.0)})
    workload = unit_workload([(1, 1), (1, 1)], num_microbatches=1, message_bytes=4.0)

    result = simulate(topology, workload, plan(0, 1), Corrections(message_overhead_s=0.5))
    assert result.makespan_s == 1 + 1.5 + 1 + 1 + 1.5 + 1


def test_pass_times_of_70b_in_one_domain_by_hand():
    """8 GPUs x 120 TFLOP/s x 0.5 = 480 TFLOP/s.

    Forward of a layer: 2 s (2 h^2 + 2 h 1024 + 3 h 28672) + 4 s^2 h; of the head: 2 s h V.
    """
    s, h = 4096, 8192
    layer = 2 * s * (2 * h * h + 2 * h * 1024 + 3 * h * 28672) + 4 * s * s * h
    forward_s = (80 * layer + 2 * s * h * 32000) / 480e12
    workload = build_workload("llama_70b", num_microbatches=1)

    result = simulate(read_topology(EAST_CENTRAL_WEST), workload, plan(*[1] * 80))
    assert times(result, 0)["F0"] == (0, pytest.approx(forward_s))
    assert result.makespan_s == pytest.approx(3 * forward_s)
    assert result.utilisation == pytest.approx(0.5 / 3)  # half the peak of one domain of three
