"""List scheduling under a rule, and the search for the best rule."""

import dataclasses
import math
from operator import itemgetter
from typing import get_args

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines import ANY, pipelines

from des.schedules import (
    Border,
    Pipeline,
    check_order_memory,
    check_orders,
    timing_of,
)
from des.schedules.automatic import automatic_zero_bubble
from des.schedules.interleaved import wave_devices
from des.schedules.list_scheduling import (
    DispatchRule,
    ListScheduler,
    Objective,
    list_schedule,
)
from des.schedules.zero_bubble import zb_h1, zb_h2

MAKESPAN = itemgetter(1)

FEW = settings(max_examples=examples(30), deadline=None)


def rule(turn="D", hold_fraction=0.0, gap_fraction=0.0):
    return DispatchRule(turn=turn, hold_fraction=hold_fraction, gap_fraction=gap_fraction)


def text(orders, device=0):
    return " ".join(f"{kind}{microbatch}" for kind, microbatch, _ in orders[device])


def in_memory(pipeline, memory, rest):
    """Activations of 1 a stage and microbatch, of which ``rest`` stays for the weight gradient."""
    return dataclasses.replace(
        pipeline,
        weight_input_bytes=(rest,) * pipeline.num_stages,
        memory_bytes=(float(memory),) * pipeline.num_devices,
    )


def busiest_s(pipeline):
    """Work of the device that has most."""
    work_s = [0.0] * pipeline.num_devices
    for stage, device in enumerate(pipeline.device_of_stage):
        work_s[device] += pipeline.num_microbatches * pipeline.work_s[stage]
    return max(work_s)


def rules():
    fraction = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0.0, 5.0)
    turn = st.sampled_from(["F", "D", "alternate"])
    return st.builds(DispatchRule, turn=turn, hold_fraction=fraction, gap_fraction=fraction)


# One rule.


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        ("F", "F0 F1 F2 D0 D1 D2 W0 W1 W2"),
        ("D", "F0 D0 F1 D1 F2 D2 W0 W1 W2"),
        ("alternate", "F0 D0 F1 D1 F2 D2 W0 W1 W2"),
    ],
)
def test_what_comes_first_on_a_single_device(turn, expected):
    assert text(list_schedule(Pipeline.uniform(1, 3), rule(turn))) == expected


def test_alternating_goes_on_with_what_was_not_last():
    """Device 0 has F0, F1, F2 behind it when D0 and F3 are there; D0 comes first, then F3."""
    orders = list_schedule(Pipeline.uniform(2, 5), rule("alternate"))

    assert text(orders).startswith("F0 F1 F2 D0 F3 D1 F4")


def test_memory_for_two_microbatches_by_hand():
    """After F0 F1 all is full; D0 frees half a microbatch, D1 the other half, so F2 can start."""
    pipeline = in_memory(Pipeline.uniform(1, 3), 2, rest=0.5)

    assert text(list_schedule(pipeline, rule("F"))) == "F0 F1 D0 D1 F2 D2 W0 W1 W2"


def test_weight_gradients_free_memory_where_nothing_else_can_start():
    """Input gradients free nothing here, so every forward after the second waits for a W."""
    pipeline = in_memory(Pipeline.uniform(1, 4), 2, rest=1.0)

    assert text(list_schedule(pipeline, rule("F"))) == "F0 F1 D0 D1 W0 F2 D2 W1 F3 D3 W2 W3"


def test_an_input_gradient_that_keeps_more_than_it_frees_gets_room():
    """F 1, D another 1 (2 in all): of memory 3, D1 needs W0 first, and F2 as well."""
    pipeline = in_memory(Pipeline.uniform(1, 3), 3, rest=2.0)

    orders = list_schedule(pipeline, rule("F"))
    assert text(orders) == "F0 F1 D0 W0 F2 D1 W1 D2 W2"
    check_order_memory(orders, pipeline)


@pytest.mark.parametrize(
    ("gap_fraction", "expected"), [(0.5, "F0 D0 W0 F1 D1 W1"), (1.0, "F0 D0 F1 D1 W0 W1")]
)
def test_gaps_are_filled_from_a_part_of_the_weight_gradients_time(gap_fraction, expected):
    """Stage 1 ends D0 at 3.5 s and knows that F1 comes at 4 s; a weight gradient takes 1 s."""
    pipeline = dataclasses.replace(
        Pipeline.uniform(2, 2), forward_s=(2.0, 1.0), input_gradient_s=(0.5, 0.5)
    )

    assert text(list_schedule(pipeline, rule(gap_fraction=gap_fraction)), 1) == expected


@pytest.mark.parametrize(
    ("hold_fraction", "expected"), [(0.25, "F0 F1 F2 D0"), (0.5, "F0 F1 F2 D0"), (0.75, "F0 F1 D0")]
)
def test_forwards_are_held_back_for_an_input_gradient_that_comes_soon(hold_fraction, expected):
    """At 2 s stage 0 knows that D0 comes at 2.5 s, half a forward pass later."""
    pipeline = dataclasses.replace(Pipeline.uniform(2, 3), forward_s=(1.0, 0.5))

    orders = list_schedule(pipeline, rule(hold_fraction=hold_fraction))
    assert text(orders).startswith(expected)


@FEW
@given(pipeline=pipelines(figures=ANY), chosen=rules())
def test_any_rule_gives_whole_orders_that_fit_and_never_block(pipeline, chosen):
    orders = list_schedule(pipeline, chosen)

    check_orders(orders, pipeline.device_of_stage, pipeline.num_microbatches)
    check_order_memory(orders, pipeline)
    assert timing_of(orders, pipeline).makespan_s >= busiest_s(pipeline) * (1 - 1e-9)


@FEW
@given(
    pipeline=pipelines(max_chunks=3, figures=ANY), tried=st.lists(rules(), min_size=1, max_size=3)
)
def test_times_of_a_rule_are_those_of_its_orders_to_the_last_bit(pipeline, tried):
    scheduler = ListScheduler(pipeline)
    for chosen in tried:
        times_s = scheduler.run(chosen)
        orders = scheduler.orders()
        timing = timing_of(orders, pipeline)
        assert times_s == (timing.longest_worker_s, timing.makespan_s)
        assert scheduler.follow(orders) == times_s
        for objective in get_args(Objective):
            limit_s = getattr(timing, objective)
            assert scheduler.run(chosen, limit_s=limit_s, objective=objective) == times_s
    alone_s = [scheduler.run(chosen) for chosen in tried]
    for times_s, own_s in zip(scheduler.run_all(tried), alone_s, strict=True):
        assert times_s in (own_s, (math.inf, math.inf))
    assert min(scheduler.run_all(tried), key=MAKESPAN) == min(alone_s, key=MAKESPAN)


def test_memory_without_room_for_a_microbatch_is_refused():
    pipeline = in_memory(Pipeline.uniform(4, 3, num_devices=2), 1.5, rest=0.5)

    with pytest.raises(ValueError, match=r"device 0 must have memory for one microb.* 2 bytes"):
        list_schedule(pipeline, rule())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"turn": "W"}, "turn must be F, D or alternate, got 'W'"),
        ({"hold_fraction": -0.1}, "hold_fraction must be finite and not negative"),
        ({"gap_fraction": math.nan}, "gap_fraction must be finite and not negative"),
    ],
)
def test_rules_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        rule(**changes)


# The search.


@pytest.mark.parametrize(("num_stages", "num_microbatches"), [(2, 4), (4, 8), (4, 12), (8, 16)])
def test_equal_passes_in_twice_the_memory_leave_no_bubble(num_stages, num_microbatches):
    """ZB-H2's closed form, (p - 1)(F + D - 2 W) = 0."""
    pipeline = in_memory(Pipeline.uniform(num_stages, num_microbatches), 2 * num_stages, rest=0.5)

    timing = timing_of(automatic_zero_bubble(pipeline), pipeline)
    assert timing.longest_worker_s == pytest.approx(3.0 * num_microbatches)


@pytest.mark.parametrize(("num_devices", "num_microbatches"), [(2, 4), (4, 8), (8, 24)])
def test_equal_passes_on_a_v_leave_no_bubble_in_the_memory_of_1f1b(num_devices, num_microbatches):
    """ZB-V: 2 p half-size chunks, as much as p whole stages of 1F1B."""
    pipeline = dataclasses.replace(
        in_memory(Pipeline.uniform(2 * num_devices, num_microbatches), 2 * num_devices, rest=0.5),
        device_of_stage=wave_devices(num_devices, 2),
        memory_bytes=(2.0 * num_devices,) * num_devices,
    )

    orders = automatic_zero_bubble(pipeline)
    check_order_memory(orders, pipeline)
    assert timing_of(orders, pipeline).longest_worker_s == pytest.approx(6.0 * num_microbatches)


@FEW
@given(pipeline=pipelines(max_chunks=2, max_microbatches=5, figures=ANY), longest=st.booleans())
def test_the_search_keeps_to_memory_and_to_what_no_schedule_can_beat(pipeline, longest):
    """Its own work, for each device; and the way of one microbatch through all stages and back."""
    objective = "longest_worker_s" if longest else "makespan_s"
    orders = automatic_zero_bubble(pipeline, objective)

    check_orders(orders, pipeline.device_of_stage, pipeline.num_microbatches)
    check_order_memory(orders, pipeline)
    timing = timing_of(orders, pipeline)
    assert timing.longest_worker_s >= busiest_s(pipeline) * (1 - 1e-9)
    way_s = sum(pipeline.forward_s) + sum(pipeline.input_gradient_s)
    for stage in range(pipeline.num_stages - 1):
        if pipeline.device_of_stage[stage] != pipeline.device_of_stage[stage + 1]:
            for border in (pipeline.down[stage], pipeline.up[stage]):
                way_s += border.transfer_s + border.latency_s
    assert timing.makespan_s >= (way_s + pipeline.weight_gradient_s[0]) * (1 - 1e-9)


@FEW
@given(
    num_stages=st.integers(2, 5),
    num_microbatches=st.integers(1, 10),
    passes_s=st.tuples(*[st.floats(0.1, 9.0)] * 3),
    latency_s=st.floats(0.0, 9.0),
)
def test_equal_stages_stay_above_their_bound_and_never_behind_the_hand_made(
    num_stages, num_microbatches, passes_s, latency_s
):
    """First device: (p - 1)(F + D + 2 C) + m (F + D) + W. Twice the memory has room for ZB-H2."""
    forward_s, input_s, weight_s = passes_s
    pipeline = in_memory(
        Pipeline.uniform(
            num_stages,
            num_microbatches,
            forward_s=forward_s,
            input_gradient_s=input_s,
            weight_gradient_s=weight_s,
            border=Border(latency_s=latency_s),
        ),
        2 * num_stages,
        rest=0.5,
    )

    found_s = timing_of(automatic_zero_bubble(pipeline), pipeline).longest_worker_s
    pair_s = forward_s + input_s
    fill_s = (num_stages - 1) * (pair_s + 2 * latency_s)
    assert found_s >= (fill_s + num_microbatches * pair_s + weight_s) * (1 - 1e-9)
    for hand_made in (zb_h1, zb_h2):
        orders = hand_made(num_stages, num_microbatches)
        check_order_memory(orders, pipeline)
        assert found_s <= timing_of(orders, pipeline).longest_worker_s * (1 + 1e-9)


def test_without_the_memory_for_it_zb_h1_is_not_a_candidate():
    """One microbatch at a time: the devices take turns, 2 s of forwards, 2 s back, 1 s for W."""
    pipeline = in_memory(Pipeline.uniform(2, 3), 1, rest=1.0)

    orders = automatic_zero_bubble(pipeline)
    check_order_memory(orders, pipeline)
    assert text(orders) == "F0 D0 W0 F1 D1 W1 F2 D2 W2"
    assert timing_of(orders, pipeline).makespan_s == pytest.approx(15.0)


def test_each_objective_gets_its_own_orders():
    """Three stages in little memory: to start later shortens a device's time, not the makespan."""
    pipeline = dataclasses.replace(
        in_memory(Pipeline.uniform(3, 4, input_gradient_s=2.0), 2, rest=0.5),
        forward_s=(1.0, 2.0, 3.0),
        weight_gradient_s=(2.0, 3.0, 3.0),
    )

    longest = timing_of(automatic_zero_bubble(pipeline, "longest_worker_s"), pipeline)
    makespan = timing_of(automatic_zero_bubble(pipeline, "makespan_s"), pipeline)
    assert longest.longest_worker_s < makespan.longest_worker_s
    assert makespan.makespan_s < longest.makespan_s


@FEW
@given(pipeline=pipelines(max_chunks=2, max_microbatches=4, figures=ANY))
def test_the_same_pipeline_gives_the_same_orders(pipeline):
    assert automatic_zero_bubble(pipeline) == automatic_zero_bubble(pipeline)


def test_the_objective_must_be_known():
    with pytest.raises(ValueError, match="objective must be longest_worker_s or makespan_s"):
        automatic_zero_bubble(Pipeline.uniform(2, 2), "utilisation")
