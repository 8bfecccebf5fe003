"""1F1B with a deeper warm-up: as deep as hides the borders, as memory allows."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pipelines import pipelines

from des.schedules import (
    Border,
    Pipeline,
    check_order_memory,
    check_orders,
    timing_of,
)
from des.schedules.deep_1f1b import deep_1f1b, makespans_of
from des.schedules.flush import one_f_one_b, warm_up_then_alternate

SLOW = Border(latency_s=4.0)


def warm_ups(orders):
    """Forwards before the first pair of a forward and a backward."""
    return [[kind for kind, _, _ in order].index("B") - 1 for order in orders]


def one_slow_border(num_microbatches, *, memory=float("inf"), border=SLOW):
    """Four equal stages of F = 1 and B = 2, with a slow border in the middle."""
    borders = (Border(), border, Border())
    return replace(
        Pipeline.uniform(4, num_microbatches), down=borders, up=borders, memory_bytes=(memory,) * 4
    )


def test_without_delay_it_is_1f1b():
    assert deep_1f1b(Pipeline.uniform(4, 12)) == one_f_one_b(4, 12)


def test_the_warm_up_hides_a_slow_border_by_hand():
    """Round trip 2 (F + B) + 2 * 4 = 14, period 3: ceil(14 / 3) - 1 = 4 more than the next one."""
    orders = deep_1f1b(one_slow_border(40))

    assert warm_ups(orders) == [6, 5, 1, 0]


def test_with_that_depth_latency_costs_only_at_start_and_end():
    few, many = (
        timing_of(deep_1f1b(pipeline), pipeline).makespan_s
        for pipeline in (one_slow_border(30), one_slow_border(50))
    )
    assert many - few == pytest.approx(20 * 3.0)


def test_no_depth_hides_bandwidth():
    """A wire of 5 s a message: the period is 5, ceil(16 / 5) - 1 = 3, and more would not help."""
    slow = Border(transfer_s=5.0)
    few, many = (one_slow_border(count, border=slow) for count in (30, 50))

    assert warm_ups(deep_1f1b(few))[1:] == [4, 1, 0]
    grows_s = (
        timing_of(deep_1f1b(many), many).makespan_s - timing_of(deep_1f1b(few), few).makespan_s
    )
    assert grows_s == pytest.approx(20 * 5.0)


@pytest.mark.parametrize("memory", [1, 2, 3, 4, 5, 6, 7])
def test_memory_limits_the_depth(memory):
    pipeline = one_slow_border(24, memory=float(memory))
    orders = deep_1f1b(pipeline)

    check_order_memory(orders, pipeline)
    assert max(warm_ups(orders)) <= memory - 1
    more = one_slow_border(24, memory=memory + 1.0)
    assert timing_of(deep_1f1b(more), more).makespan_s <= timing_of(orders, pipeline).makespan_s


@pytest.mark.parametrize("latency_s", [0.0, 1.0, 3.0, 7.0])
@pytest.mark.parametrize("memory", [3.0, 4.0, 6.0])
def test_no_other_warm_up_is_faster_on_equal_stages(latency_s, memory):
    """All warm-ups of three stages that do not deadlock and fit."""
    num_microbatches = 9
    borders = (Border(latency_s=latency_s), Border())
    pipeline = replace(
        Pipeline.uniform(3, num_microbatches), down=borders, up=borders, memory_bytes=(memory,) * 3
    )
    fitting = (
        depths
        for depths in product(range(int(memory)), repeat=3)
        if list(depths) == sorted(depths, reverse=True)
    )
    shortest_s = min(
        timing_of(
            [
                warm_up_then_alternate(stage, depth, num_microbatches)
                for stage, depth in enumerate(depths)
            ],
            pipeline,
        ).makespan_s
        for depths in fitting
    )
    assert timing_of(deep_1f1b(pipeline), pipeline).makespan_s == shortest_s


@settings(deadline=None)
@given(pipeline=pipelines(max_chunks=1), factor=st.integers(1, 3))
def test_orders_are_valid_and_no_slower_than_1f1b_where_that_fits(pipeline, factor):
    pipeline = replace(
        pipeline, memory_bytes=tuple(factor * room for room in pipeline.memory_bytes)
    )
    orders = deep_1f1b(pipeline)

    check_orders(orders, pipeline.device_of_stage, pipeline.num_microbatches)
    check_order_memory(orders, pipeline)
    plain = one_f_one_b(pipeline.num_stages, pipeline.num_microbatches)
    try:
        check_order_memory(plain, pipeline)
    except ValueError:
        assume(False)
    longest_s = timing_of(plain, pipeline).makespan_s
    assert timing_of(orders, pipeline).makespan_s <= longest_s * (1.0 + 1e-9)


@settings(deadline=None)
@given(pipeline=pipelines(max_chunks=1), data=st.data())
def test_warm_ups_are_timed_as_their_orders_to_the_last_bit(pipeline, data):
    num_stages, num_microbatches = pipeline.num_stages, pipeline.num_microbatches
    counts = st.lists(st.integers(0, num_microbatches), min_size=num_stages, max_size=num_stages)
    found = data.draw(st.lists(counts.map(lambda own: sorted(own, reverse=True)), min_size=1))
    by_orders = [
        timing_of(
            [
                warm_up_then_alternate(stage, depth, num_microbatches)
                for stage, depth in enumerate(depths)
            ],
            pipeline,
        ).makespan_s
        for depths in found
    ]
    assert makespans_of(found, pipeline) == by_orders


def test_stages_that_wait_for_each_other_for_ever_never_end():
    """The second stage wants two forwards before its first gradient, the first one gives one."""
    assert makespans_of([(0, 1)], Pipeline.uniform(2, 4)) == [float("inf")]


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (Pipeline.uniform(4, 2, num_devices=2), "needs a device for each of 4 stages, got 2"),
        (one_slow_border(2, memory=0.5), "stage 0 must have memory for one microbatch, 1 bytes"),
    ],
)
def test_what_it_cannot_do_is_refused(pipeline, message):
    with pytest.raises(ValueError, match=message):
        deep_1f1b(pipeline)
