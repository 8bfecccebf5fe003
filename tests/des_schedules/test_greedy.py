"""The greedy schedule: one rule, within memory, that hides the latency of borders."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from pipelines import pipelines

from des.schedules import (
    Border,
    Pipeline,
    check_order_memory,
    check_orders,
    timing_of,
)
from des.schedules.crossings import Crossing, crossing_of
from des.schedules.flush import one_f_one_b
from des.schedules.greedy import greedy


def test_the_order_of_two_devices_by_hand():
    """D0 is there at 3, when device 0 has done three forwards; then F and D in turn while both can
    start, and W fills every second that is left.
    """
    orders = greedy(Pipeline.uniform(2, 4))

    assert [
        " ".join(f"{kind}{microbatch}" for kind, microbatch, _ in order) for order in orders
    ] == [
        "F0 F1 F2 D0 F3 D1 W0 D2 W1 D3 W2 W3",
        "F0 D0 F1 D1 F2 D2 F3 D3 W0 W1 W2 W3",
    ]


@settings(deadline=None)
@given(pipeline=pipelines())
def test_orders_are_valid_fit_into_memory_and_do_not_deadlock(pipeline):
    orders = greedy(pipeline)

    check_orders(orders, pipeline.device_of_stage, pipeline.num_microbatches)
    check_order_memory(orders, pipeline)
    busiest_s = max(
        sum(
            pipeline.work_s[stage]
            for stage, where in enumerate(pipeline.device_of_stage)
            if where == device
        )
        for device in range(pipeline.num_devices)
    )
    assert timing_of(orders, pipeline).makespan_s >= busiest_s * pipeline.num_microbatches


@pytest.mark.parametrize("latency_s", [0.0, 2.0, 10.0])
def test_with_memory_latency_costs_only_at_start_and_end(latency_s):
    """Ten more microbatches take ten times the work of one; in 1F1B each waits for a border."""

    def grows_by_s(schedule):
        spans_s = []
        for num_microbatches in (70, 80):
            pipeline = Pipeline.uniform(4, num_microbatches, border=Border(latency_s=latency_s))
            orders = schedule(pipeline)
            spans_s.append(timing_of(orders, pipeline).makespan_s)
        return spans_s[1] - spans_s[0]

    assert grows_by_s(greedy) == pytest.approx(10 * 3.0)
    waits_s = grows_by_s(lambda pipeline: one_f_one_b(4, pipeline.num_microbatches))
    assert waits_s >= 10 * (3.0 + latency_s) - 1e-9


def test_a_device_without_room_for_one_microbatch_is_refused():
    pipeline = replace(Pipeline.uniform(4, 2, num_devices=2), memory_bytes=(2.0, 1.5))

    with pytest.raises(ValueError, match=r"device 1 must have memory for one .* 2 bytes; got 1\.5"):
        greedy(pipeline)


def test_outputs_cross_to_the_neighbour_and_stages_of_two_devices_share_a_wire():
    """The V of two devices: stages 0 and 3 on the first, 1 and 2 on the second."""
    there, back = Border(latency_s=1.0), Border(latency_s=2.0)
    pipeline = replace(
        Pipeline.uniform(4, 1),
        device_of_stage=(0, 1, 1, 0),
        memory_bytes=(9.0, 9.0),
        down=(there,) * 3,
        up=(back,) * 3,
    )

    assert crossing_of("F", 0, pipeline) == Crossing(1, there, (0, 1))
    assert crossing_of("D", 3, pipeline) == Crossing(2, back, (0, 1))
    assert crossing_of("B", 1, pipeline) == Crossing(0, back, (1, 0))
    assert crossing_of("F", 1, pipeline) == Crossing(2, Border(), None)
    assert crossing_of("F", 3, pipeline) is None
    assert crossing_of("D", 0, pipeline) is None
    assert crossing_of("W", 2, pipeline) is None


def test_messages_of_two_stages_queue_for_the_wire_between_their_devices():
    """D of stage 3, ready at 5, finds the wire taken by F1 of stage 0, which leaves at 2 for 4 s.

    F1 itself has waited for F0: the wire is busy from 1 to 5 and from 5 to 9.
    """
    slow = Border(transfer_s=4.0)
    pipeline = replace(
        Pipeline.uniform(4, 2),
        device_of_stage=(0, 1, 1, 0),
        memory_bytes=(9.0, 9.0),
        down=(slow, Border(), Border()),
        up=(Border(), Border(), slow),
    )
    orders = greedy(pipeline)
    timing = timing_of(orders, pipeline)

    starts_s = {
        (one.kind, one.microbatch, one.stage): start_s
        for order, times in zip(orders, timing.start_s, strict=True)
        for one, start_s in zip(order, times, strict=True)
    }
    assert starts_s["F", 0, 1] == 5.0
    assert starts_s["F", 1, 1] == 9.0
    assert starts_s["D", 0, 3] == 8.0  # F of stages 1, 2 and 3 from 5 on
    assert starts_s["D", 0, 2] == 13.0  # ready at 9, when the wire is free again
