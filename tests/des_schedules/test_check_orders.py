"""The checker of orders against brute force: deadlocks, what is held, and whether it fits."""

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import STATIC_SCHEDULES

from des import DeadlockError, Operation
from des.schedules import (
    Pipeline,
    check_order_memory,
    check_orders,
    completion_order,
    most_held,
    peaks_held,
    stage_orders,
)
from des.schedules.check import input_of, peak_bytes


def order(text: str, stage: int) -> tuple[Operation, ...]:
    """The order of a stage that a text such as ``"F0 B0"`` says."""
    return tuple(Operation(item[0], int(item[1:]), stage) for item in text.split())


@st.composite
def worker_orders(draw, *, max_stages=3, max_microbatches=4):
    """One worker that does passes of several stages in any order that its own passes allow."""
    num_stages = draw(st.integers(1, max_stages))
    left = {}
    for stage in range(num_stages):
        for microbatch in range(draw(st.integers(1, max_microbatches))):
            left[stage, microbatch] = draw(st.sampled_from(["FB", "FDW"]))
    found = []
    while left:
        stage, microbatch = draw(st.sampled_from(sorted(left)))
        kinds = left.pop((stage, microbatch))
        found.append(Operation(kinds[0], microbatch, stage))
        if kinds[1:]:
            left[stage, microbatch] = kinds[1:]
    return tuple(found)


@st.composite
def scattered_orders(draw):
    """Valid orders of a worker a stage that need not fit together."""
    num_stages, num_microbatches = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    orders = []
    for stage in range(num_stages):
        left = {
            microbatch: draw(st.sampled_from(["FB", "FDW"]))
            for microbatch in range(num_microbatches)
        }
        found = []
        while left:
            microbatch = draw(st.sampled_from(sorted(left)))
            found.append(Operation(left[microbatch][0], microbatch, stage))
            left[microbatch] = left[microbatch][1:]
            left = {each: kinds for each, kinds in left.items() if kinds}
        orders.append(tuple(found))
    return orders, num_microbatches


# Deadlocks.


@given(case=scattered_orders())
def test_a_completion_order_comes_after_what_it_waits_for_or_there_is_none(case):
    """Against brute force: do whatever can be done until nothing can."""
    orders, num_microbatches = case
    check_orders(orders, range(len(orders)), num_microbatches)
    left, done = [list(one) for one in orders], set()
    progress = True
    while progress:
        progress = False
        for one in left:
            if one and input_of(one[0], len(orders)) in done | {None}:
                kind, *rest = one.pop(0)
                done.add(("F" if kind == "F" else "B", *rest))
                progress = True
    stuck = [one[0] for one in left if one]

    if stuck:
        names = re.escape(": " + ", ".join(map(str, stuck)))
        with pytest.raises(DeadlockError, match=f"{names}$"):
            list(completion_order(orders, len(orders)))
        return
    completed = list(completion_order(orders, len(orders)))
    for worker, one in enumerate(orders):
        assert tuple(operation for who, operation in completed if who == worker) == one
    known = set()
    for _, operation in completed:
        assert input_of(operation, len(orders)) in known | {None}
        known.add(("F" if operation.kind == "F" else "B", *operation[1:]))


def test_a_deadlock_names_the_operations_that_wait():
    """Stage 0 wants B0 before it sends F1, stage 1 wants F1 before it sends B0."""
    message = "schedule: deadlock, waiting for their inputs: B0 of stage 0, F1 of stage 1"
    with pytest.raises(DeadlockError, match=f"^{message}$"):
        list(completion_order([order("F0 B0 F1 B1", 0), order("F0 F1 B0 B1", 1)], 2))


def test_a_worker_that_waits_for_itself_is_a_deadlock():
    """Its second stage comes before the first."""
    own = (*order("F0", 1), *order("F0 B0", 0), *order("B0", 1))

    with pytest.raises(DeadlockError, match=r"waiting for their inputs: F0 of stage 1$"):
        list(completion_order([own], 2))


# What is held.


def totals(operations, whole, halved):
    """Bytes held after each operation, microbatch by microbatch."""
    held = {}
    for kind, microbatch, stage in operations:
        held[stage, microbatch] = {"F": whole[stage], "D": halved[stage]}.get(kind, 0)
        yield sum(held.values())


@given(
    one=worker_orders(),
    weights=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=3),
)
def test_the_peaks_are_the_worst_moments_whatever_a_microbatch_weighs(one, weights):
    """The halves may weigh more than the whole, as where activations are made again."""
    whole, halved = zip(*weights, strict=True)
    worst = max(totals(one, whole, halved))

    (moments,) = peaks_held((one,))
    assert worst == max(
        sum(
            held.num_whole * whole[held.stage] + held.num_halved * halved[held.stage]
            for held in moment
        )
        for moment in moments
    )
    pipeline = dataclasses.replace(
        Pipeline.uniform(3, 4, num_devices=1),
        activation_bytes=tuple(map(float, whole)),
        weight_input_bytes=tuple(map(float, halved)),
    )
    peak, culprit = peak_bytes(one, pipeline)
    assert peak == worst
    if worst:
        assert culprit == one[list(totals(one, whole, halved)).index(worst)]


@given(one=worker_orders())
def test_no_peak_covers_another(one):
    (moments,) = peaks_held((one,))

    counts = [[count for held in moment for count in held[1:]] for moment in moments]
    for this in counts:
        covered = [all(a <= b for a, b in zip(this, other, strict=True)) for other in counts]
        assert sum(covered) == 1


@pytest.mark.parametrize("schedule", STATIC_SCHEDULES)
@given(num_stages=st.integers(1, 8), num_microbatches=st.integers(1, 12))
def test_the_most_that_is_held_is_that_of_a_count(schedule, num_stages, num_microbatches):
    """From the start of F to the end of B or W, which is where both halves weigh the same."""
    orders = stage_orders(schedule, num_stages, num_microbatches)

    ones = (1,) * num_stages
    assert most_held(orders, num_stages) == tuple(max(totals(one, ones, ones)) for one in orders)


def test_a_zero_bubble_schedule_holds_halves_by_hand():
    """ZB-H1, last of two stages: F0 D0 F1 D1 W0 ...: one whole beside one half, then two halves."""
    orders = (order("F0 D0 F1 D1 W0 F2 D2 W1 W2", 0),)

    assert [tuple(held) for moment in peaks_held(orders)[0] for held in moment] == [
        (0, 1, 1),
        (0, 0, 2),
    ]


# Whether it fits.


def pipeline_of_two(memory_bytes: tuple[float, ...], device_of_stage: tuple[int, ...]) -> Pipeline:
    """Two stages that keep 2 and 3 GB of a microbatch, half of it for the weight gradient."""
    return dataclasses.replace(
        Pipeline.uniform(2, 4),
        device_of_stage=device_of_stage,
        activation_bytes=(2e9, 3e9),
        weight_input_bytes=(1e9, 1.5e9),
        memory_bytes=memory_bytes,
    )


def test_orders_that_just_fit_pass_and_others_name_the_operation_by_hand():
    """1F1B of two stages holds two microbatches, then one: 4 GB and 3 GB."""
    orders = stage_orders("1f1b", 2, 4)

    check_order_memory(orders, pipeline_of_two((4e9, 3e9), (0, 1)))
    message = "activations on device 0 must fit into 3.900 GB, F1 of stage 0 needs 4.000 GB"
    with pytest.raises(ValueError, match=re.escape(f"schedule: {message}")):
        check_order_memory(orders, pipeline_of_two((3.9e9, 3e9), (0, 1)))
    with pytest.raises(ValueError, match=r"device 1 must .*, F0 of stage 1 needs 3\.000 GB"):
        check_order_memory(orders, pipeline_of_two((4e9, 2e9), (0, 1)))


def test_workers_of_one_device_add_up():
    """7 GB together, and the last of them is named."""
    orders = stage_orders("1f1b", 2, 4)

    check_order_memory(orders, pipeline_of_two((7e9,), (0, 0)))
    with pytest.raises(ValueError, match=r"device 0 .* 6\.900 GB, F0 of stage 1 needs 7\.000 GB"):
        check_order_memory(orders, pipeline_of_two((6.9e9,), (0, 0)))


def test_halves_count_while_they_are_kept():
    """Stage 0 puts both weight gradients off: F1 comes on top of one half, 3 GB."""
    orders = [order("F0 D0 F1 D1 W0 W1", 0), order("F0 B0 F1 B1", 1)]

    check_order_memory(orders, pipeline_of_two((3e9, 3e9), (0, 1)))
    with pytest.raises(ValueError, match=r"F1 of stage 0 needs 3\.000 GB"):
        check_order_memory(orders, pipeline_of_two((2.9e9, 3e9), (0, 1)))


def test_an_empty_order_is_refused():
    with pytest.raises(ValueError, match="an order must hold at least one operation, got none"):
        peak_bytes((), pipeline_of_two((1.0, 1.0), (0, 1)))
