"""Several stages on a device: who has which, and Megatron's interleaved 1F1B."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.schedules import Pipeline, check_orders, timing_of
from des.schedules.interleaved import interleaved_1f1b, loop_devices, wave_devices

counts = st.integers(1, 6)
times_s = st.floats(0.1, 9.0)


def text(order):
    return " ".join(f"{kind}{microbatch}@{stage}" for kind, microbatch, stage in order)


@pytest.mark.parametrize(
    ("arguments", "orders"),
    [
        # Device 0 warms up with 2 + 2 forwards, device 1 with 2: all of a chunk, then of the next.
        (
            (2, 2, 4),
            [
                "F0@0 F1@0 F0@2 F1@2 F2@0 B0@2 F3@0 B1@2 F2@2 B0@0 F3@2 B1@0 B2@2 B3@2 B2@0 B3@0",
                "F0@1 F1@1 F0@3 B0@3 F1@3 B1@3 F2@1 B0@1 F3@1 B1@1 F2@3 B2@3 F3@3 B3@3 B2@1 B3@1",
            ],
        ),
        # Groups of 3: 2 + 3 and 0 + 3 forwards to begin with; the last group has 2.
        (
            (2, 2, 5, 3),
            [
                "F0@0 F1@0 F2@0 F0@2 F1@2 F2@2 B0@2 F3@0 B1@2 F4@0 B2@2 F3@2 B0@0 F4@2 B1@0 B2@0 "
                "B3@2 B4@2 B3@0 B4@0",
                "F0@1 F1@1 F2@1 F0@3 B0@3 F1@3 B1@3 F2@3 B2@3 F3@1 B0@1 F4@1 B1@1 F3@3 B2@1 F4@3 "
                "B3@3 B4@3 B3@1 B4@1",
            ],
        ),
    ],
)
def test_two_devices_with_two_chunks_by_hand(arguments, orders):
    assert [text(order) for order in interleaved_1f1b(*arguments)] == orders


@given(
    num_devices=counts,
    num_chunks=st.integers(1, 4),
    num_groups=st.integers(1, 4),
    passes_s=st.tuples(times_s, times_s, times_s),
)
def test_equal_stages_on_free_borders_match_the_closed_form(
    num_devices, num_chunks, num_groups, passes_s
):
    """Bubble is (p - 1) (F + B) / chunks, where F and B are those of a whole device."""
    num_microbatches = num_groups * num_devices
    forward_s, input_s, weight_s = passes_s
    pipeline = Pipeline.uniform(
        num_devices * num_chunks,
        num_microbatches,
        forward_s=forward_s / num_chunks,
        input_gradient_s=input_s / num_chunks,
        weight_gradient_s=weight_s / num_chunks,
        num_devices=num_devices,
    )

    timing = timing_of(interleaved_1f1b(num_devices, num_chunks, num_microbatches), pipeline)

    bubble_s = (num_devices - 1) * sum(passes_s) / num_chunks
    assert timing.makespan_s == pytest.approx(num_microbatches * sum(passes_s) + bubble_s)
    assert timing.longest_worker_s == pytest.approx(timing.makespan_s)


@given(num_devices=counts, num_chunks=st.integers(1, 4), num_microbatches=st.integers(1, 20))
def test_any_counts_give_whole_orders_without_deadlock(num_devices, num_chunks, num_microbatches):
    """Fewer microbatches than devices, and groups that are not full, included."""
    orders = interleaved_1f1b(num_devices, num_chunks, num_microbatches)

    devices = loop_devices(num_devices, num_chunks)
    check_orders(orders, devices, num_microbatches)
    pipeline = Pipeline.uniform(
        len(devices), num_microbatches, input_gradient_s=2.0, num_devices=num_devices
    )
    assert timing_of(orders, pipeline).makespan_s >= num_chunks * num_microbatches * 4.0


@given(num_devices=counts, num_chunks=st.integers(1, 4), num_groups=st.integers(1, 4))
def test_warm_up_is_megatrons(num_devices, num_chunks, num_groups):
    """Full groups; in the steady state one more forward comes before the first backward."""
    total = num_chunks * num_groups * num_devices
    for rank, order in enumerate(interleaved_1f1b(num_devices, num_chunks, total // num_chunks)):
        kinds = "".join(operation.kind for operation in order)
        num_warm_up = 2 * (num_devices - 1 - rank) + (num_chunks - 1) * num_devices

        assert kinds.index("B") == min(num_warm_up + 1, total)
        steady = kinds.strip("F") if num_warm_up >= total else kinds[num_warm_up:]
        assert "FF" not in steady.rstrip("B")


@given(num_devices=counts, num_chunks=st.integers(1, 4), num_microbatches=st.integers(1, 20))
def test_groups_that_are_not_full_leave_out_what_is_not_there(
    num_devices, num_chunks, num_microbatches
):
    whole = -(-num_microbatches // num_devices) * num_devices

    assert interleaved_1f1b(num_devices, num_chunks, num_microbatches) == tuple(
        tuple(operation for operation in order if operation.microbatch < num_microbatches)
        for order in interleaved_1f1b(num_devices, num_chunks, whole)
    )


@given(
    num_devices=counts,
    num_chunks=st.integers(1, 4),
    num_microbatches=st.integers(1, 20),
    more=st.integers(0, 5),
)
def test_groups_of_any_size_do_not_deadlock(num_devices, num_chunks, num_microbatches, more):
    size = num_devices + more
    orders = interleaved_1f1b(num_devices, num_chunks, num_microbatches, size)

    check_orders(orders, loop_devices(num_devices, num_chunks), num_microbatches)
    for rank, order in enumerate(orders):
        num_warm_up = 2 * (num_devices - 1 - rank) + (num_chunks - 1) * size
        first = next(at for at, operation in enumerate(order) if operation.kind == "B")
        assert first <= min(num_warm_up + 1, num_chunks * num_microbatches)


def test_groups_are_not_smaller_than_the_pipeline():
    with pytest.raises(ValueError, match="group_size must be at least the 4 devices, got 3"):
        interleaved_1f1b(4, 2, 8, group_size=3)


@pytest.mark.parametrize("devices_of", [loop_devices, wave_devices])
@given(num_devices=counts, num_chunks=st.integers(1, 5))
def test_every_device_has_as_many_chunks(devices_of, num_devices, num_chunks):
    devices = devices_of(num_devices, num_chunks)

    assert Counter(devices) == dict.fromkeys(range(num_devices), num_chunks)


@given(num_devices=counts, num_chunks=st.integers(1, 5))
def test_a_wave_only_goes_to_neighbours(num_devices, num_chunks):
    """A loop jumps from the last device to the first; a wave turns where it is."""
    devices = wave_devices(num_devices, num_chunks)

    assert all(abs(here - there) <= 1 for here, there in pairwise(devices))
    assert (
        devices[: 2 * num_devices]
        == (*range(num_devices), *reversed(range(num_devices)))[: len(devices)]
    )


@pytest.mark.parametrize("field", ["num_devices", "num_chunks", "num_microbatches"])
@pytest.mark.parametrize("count", [0, -1, 2.0, True])
def test_counts_must_be_whole_and_positive(field, count):
    counts = {"num_devices": 2, "num_chunks": 2, "num_microbatches": 2} | {field: count}

    with pytest.raises(ValueError, match=f"interleaved 1f1b: {field} must be a whole number"):
        interleaved_1f1b(**counts)
