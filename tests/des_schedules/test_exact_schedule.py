"""The exact search: against all orders there are, and as a bound."""

import math
from dataclasses import replace
from functools import cache
from itertools import combinations, product

import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pipelines import pipelines

from des.schedules import (
    Border,
    DeadlockError,
    Operation,
    Pipeline,
    check_order_memory,
    check_orders,
    timing_of,
)
from des.schedules.deep_1f1b import deep_1f1b
from des.schedules.exact import exact
from des.schedules.flush import one_f_one_b
from des.schedules.greedy import greedy
from des.schedules.interleaved import wave_devices
from des.schedules.zero_bubble import zb_h1

FEW = settings(max_examples=examples(25), deadline=None)


def merged(one, two):
    """All orders that keep the order within each of two sequences."""
    length = len(one) + len(two)
    for places in combinations(range(length), len(one)):
        first, second = iter(one), iter(two)
        yield tuple(next(first if at in places else second) for at in range(length))


@cache
def all_orders(first, second):
    """All orders of two (microbatch, stage) on a device; each backward pass whole or halved."""
    orders = []
    for ways in product(("FB", "FDW"), repeat=2):
        chains = (
            [Operation(kind, *one) for kind in way]
            for way, one in zip(ways, (first, second), strict=True)
        )
        orders += merged(*chains)
    return orders


def held_bytes(order, pipeline):
    """Bytes held after the begin of each F and the end of each D, microbatch by microbatch."""
    held = {}
    for kind, microbatch, stage in order:
        kept = {"F": pipeline.activation_bytes[stage], "D": pipeline.weight_input_bytes[stage]}
        held[stage, microbatch] = kept.get(kind, 0.0)
        yield sum(held.values())


def shortest_s(pipeline):
    """Least makespan of all orders that neither deadlock nor exceed memory.

    Each device has two (microbatch, stage).
    """
    on_device = [[] for _ in range(pipeline.num_devices)]
    for stage, device in enumerate(pipeline.device_of_stage):
        numbers = range(pipeline.num_microbatches)
        on_device[device] += [(microbatch, stage) for microbatch in numbers]
    fitting = [
        [
            order
            for order in all_orders(*own)
            if max(held_bytes(order, pipeline)) <= pipeline.memory_bytes[device]
        ]
        for device, own in enumerate(on_device)
    ]
    found_s = math.inf
    for orders in product(*fitting):
        try:
            found_s = min(found_s, timing_of(orders, pipeline).makespan_s)
        except DeadlockError:
            continue
    return found_s


@st.composite
def drawn(draw, device_of_stage, num_microbatches):
    """Pipelines of whole seconds and bytes, with memory for one microbatch or more."""
    count = len(device_of_stage)

    def several(values, number=count):
        return tuple(draw(values) for _ in range(number))

    time = st.integers(1, 5).map(float)
    border = st.builds(Border, transfer_s=time, latency_s=st.integers(0, 5).map(float))
    whole = several(st.integers(1, 3).map(float))
    rest = several(st.integers(0, 4).map(float))
    rooms = [float(draw(st.integers(0, 6))) for _ in set(device_of_stage)]
    for stage, device in enumerate(device_of_stage):
        rooms[device] += max(whole[stage], rest[stage])
    return Pipeline(
        num_microbatches=num_microbatches,
        device_of_stage=device_of_stage,
        forward_s=several(time),
        input_gradient_s=several(time),
        weight_gradient_s=several(time),
        down=several(border, count - 1),
        up=several(border, count - 1),
        activation_bytes=whole,
        weight_input_bytes=rest,
        memory_bytes=tuple(rooms),
    )


RECOMPUTING = replace(
    Pipeline.uniform(3, 2), weight_input_bytes=(2.0, 1.0, 1.0), memory_bytes=(2.0, 2.0, 1.0)
)
"""The first stage has memory for two microbatches, but for one alone between the halves."""


@FEW
@given(pipeline=drawn((0, 1), 2))
def test_the_optimum_of_two_stages_is_the_best_of_all_orders(pipeline):
    found = exact(pipeline)

    check_orders(found.orders, pipeline.device_of_stage, pipeline.num_microbatches)
    check_order_memory(found.orders, pipeline)
    assert found.makespan_s == timing_of(found.orders, pipeline).makespan_s
    assert found.makespan_s == found.lower_bound_s == shortest_s(pipeline)
    assert found.gap_fraction == 0.0


@settings(max_examples=examples(4))
@given(pipeline=drawn((0, 1, 2), 2))
@example(pipeline=RECOMPUTING)
def test_the_optimum_of_three_stages_is_the_best_of_all_orders(pipeline):
    """With memory for three microbatches at most, so that there are fewer orders to look at."""
    rooms = tuple(min(room, 4.0) for room in pipeline.memory_bytes)
    pipeline = replace(pipeline, memory_bytes=rooms)
    found = exact(pipeline)

    assert found.makespan_s == found.lower_bound_s == shortest_s(pipeline)


@FEW
@given(pipeline=drawn(wave_devices(2, 2), 1))
def test_the_optimum_of_a_wave_is_the_best_of_all_orders(pipeline):
    """One microbatch: no two messages compete for a wire, so the model is the timing's."""
    found = exact(pipeline)

    assert found.makespan_s == found.lower_bound_s == shortest_s(pipeline)


def test_memory_costs_time_by_hand():
    """Two stages, F = D = W = 1, latency 1: with memory for one microbatch each takes its turn.

    F at 0 and 2, D at 3 and 5: 6 s until device 0 has done D. Its W must be done before the next
    F: 7 s a microbatch, three times. Without a limit the first stage, which is idle after its
    three F until D0 comes at 5, does D0, W0 and so on: F0 F1 F2, then at 5 three times D and W.
    """
    tight = replace(Pipeline.uniform(2, 3, border=Border(latency_s=1.0)), memory_bytes=(1.0, 1.0))
    assert exact(tight).makespan_s == 21.0
    assert exact(replace(tight, memory_bytes=(3.0, 3.0))).makespan_s == 11.0


def test_whole_backward_passes_are_chosen_where_halves_need_more_memory_by_hand():
    """Stage 0 may hold both microbatches, but no halves of one beside the other: 2 + 1 > 2.

    In halves it does F0, D0 from 5, W0 and only then F1: the next D1 comes to it at 12, and W1 ends
    at 14. With whole passes F1 follows F0; stage 2, which may hold one microbatch, does F1 after
    W0, from 5, and D1 until 7, stage 1 until 8, and B1 of stage 0 ends at 10.
    """
    found = exact(RECOMPUTING)

    assert found.makespan_s == found.lower_bound_s == 10.0
    assert timing_of(deep_1f1b(RECOMPUTING), RECOMPUTING).makespan_s == 12.0
    assert {one.kind for one in found.orders[0]} == {"F", "B"}
    halved = replace(RECOMPUTING, activation_bytes=(2.0, 1.0, 1.0))  # the first half frees nothing
    assert exact(halved).makespan_s == 14.0


@pytest.mark.parametrize("num_stages", [2, 3, 4])
def test_zero_bubble_h1_is_optimal_in_the_memory_of_1f1b(num_stages):
    """Equal stages: m (F + D + W) + (p - 1)(F + D - W); P. Qi et al., ICLR'24, table 1.

    The first stage has to wait for its first input gradient and can do no further forwards.
    """
    pipeline = replace(
        Pipeline.uniform(num_stages, 6), memory_bytes=(float(num_stages),) * num_stages
    )
    found = exact(pipeline, time_limit_s=60.0)

    assert found.lower_bound_s == found.makespan_s == 6 * 3.0 + (num_stages - 1)
    assert timing_of(zb_h1(num_stages, 6), pipeline).makespan_s == found.makespan_s


@FEW
@given(pipeline=pipelines(max_devices=3, max_chunks=2, max_microbatches=5))
def test_a_short_search_is_valid_bounded_and_never_worse_than_its_starts(pipeline):
    found = exact(pipeline, work_limit=0.02)

    check_orders(found.orders, pipeline.device_of_stage, pipeline.num_microbatches)
    check_order_memory(found.orders, pipeline)
    assert found.lower_bound_s <= found.makespan_s
    starts = [greedy(pipeline)]
    if pipeline.num_devices == pipeline.num_stages:
        starts.append(deep_1f1b(pipeline))
    for start in starts:
        assert found.makespan_s <= timing_of(start, pipeline).makespan_s


def test_a_search_starts_from_what_is_given():
    """Without any work it returns the best start; whole backward passes are cut in two."""
    pipeline = Pipeline.uniform(3, 6, border=Border(transfer_s=1.0, latency_s=2.0))
    best = exact(pipeline)

    again = exact(pipeline, starts=[best.orders], work_limit=0.0)
    assert again.makespan_s == best.makespan_s
    whole = one_f_one_b(3, 6)
    started = exact(pipeline, starts=[whole], work_limit=0.0)
    assert started.makespan_s <= timing_of(whole, pipeline).makespan_s
    assert {one.kind for order in started.orders for one in order} == set("FDW")


def test_equal_work_gives_equal_orders():
    pipeline = Pipeline.uniform(4, 8, border=Border(transfer_s=0.3, latency_s=1.7))

    assert exact(pipeline, work_limit=0.05) == exact(pipeline, work_limit=0.05)


def test_times_are_cut_to_microseconds_and_the_bound_holds_for_them_as_they_are():
    pipeline = Pipeline.uniform(
        2,
        4,
        forward_s=1.0 / 3.0,
        input_gradient_s=math.pi / 10.0,
        weight_gradient_s=math.e / 10.0,
        border=Border(transfer_s=0.1, latency_s=2.0**0.5),
    )
    found = exact(pipeline)

    assert 0.0 < found.gap_fraction < 1e-4
    assert found.makespan_s == timing_of(found.orders, pipeline).makespan_s


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"time_limit_s": -1.0}, "exact: time_limit_s must be .*-1.0"),
        ({"time_limit_s": math.nan}, "exact: time_limit_s must be .*nan"),
        ({"work_limit": -1.0}, "exact: work_limit must be at least 0, got -1.0"),
        ({"work_limit": math.nan}, "exact: work_limit must be at least 0, got nan"),
    ],
)
def test_bad_limits_are_refused(limits, message):
    with pytest.raises(ValueError, match=message):
        exact(Pipeline.uniform(2, 2), **limits)


def test_a_device_without_room_for_one_microbatch_is_refused():
    with pytest.raises(ValueError, match="device 0 must have memory for one microbatch"):
        exact(replace(Pipeline.uniform(2, 2), memory_bytes=(0.5, 2.0)))
