"""Schedules of CrossPipe's cases: closed forms, orders that fit, and messages between centres."""

import pytest

from des.schedules import check_order_memory, check_orders, timing_of
from scenarios.reproduce.crosspipe_runs import (
    BLOCKING,
    COLUMNS,
    FORWARD_S,
    INPUT_GRADIENT_S,
    OUR_COLUMNS,
    WEIGHT_GRADIENT_S,
    CrossPipeRun,
    Delay,
    Effort,
    make_orders,
)

NO_SEARCH = Effort(work=0.0, seconds=60.0)

WORK_S = FORWARD_S + INPUT_GRADIENT_S + WEIGHT_GRADIENT_S
SLOW = Delay(latency_s=0.02, transfer_s=0.05, num_domains=4)


def test_without_delay_1f1b_and_zb_h1_are_their_closed_forms():
    """(m + p - 1)(F + D + W) and m (F + D + W) + (p - 1)(F + D - W); blocking changes nothing."""
    free = Delay(latency_s=0.0, transfer_s=0.0, num_domains=2)
    short_s = WORK_S - 2 * WEIGHT_GRADIENT_S
    for name, expected_s in (("1f1b", 23 * WORK_S), ("zb_h1", 16 * WORK_S + 7 * short_s)):
        cell = CrossPipeRun.of(free, COLUMNS[name])
        orders = make_orders(cell, COLUMNS[name], NO_SEARCH).orders
        assert cell.seconds_per_microbatch(orders) == pytest.approx(expected_s / 16)
        assert cell.seconds_per_microbatch(orders, BLOCKING) == pytest.approx(expected_s / 16)


@pytest.mark.parametrize("name", COLUMNS | OUR_COLUMNS)
def test_orders_are_valid_fit_and_take_as_long_in_the_simulator_as_by_recurrence(name):
    column = (COLUMNS | OUR_COLUMNS)[name]
    cell = CrossPipeRun.of(SLOW, column)
    made = make_orders(cell, column, NO_SEARCH)

    pipeline = cell.pipeline
    check_orders(made.orders, pipeline.device_of_stage, column.num_microbatches)
    check_order_memory(made.orders, pipeline)
    makespan_s = cell.seconds_per_microbatch(made.orders) * column.num_microbatches
    assert makespan_s == pytest.approx(timing_of(made.orders, pipeline).makespan_s)
    assert (made.lower_bound_s is not None) == column.searched


@pytest.mark.parametrize("num_domains", [1, 2, 4, 8])
def test_messages_cost_only_between_data_centres(num_domains):
    """The first microbatch meets every border once on its way down."""
    delay = Delay(latency_s=1.0, transfer_s=0.5, num_domains=num_domains)
    cell = CrossPipeRun.of(delay, COLUMNS["1f1b"])

    borders = [border.latency_s + border.transfer_s for border in cell.pipeline.down]
    assert sum(borders) == pytest.approx(1.5 * (num_domains - 1))
    assert len(borders) == 7


def test_a_wave_visits_every_device_twice_with_half_a_stage():
    pipeline = CrossPipeRun.of(SLOW, COLUMNS["optimal_wave_1x"]).pipeline

    assert pipeline.device_of_stage == (*range(8), *range(7)[::-1])
    assert sum(pipeline.forward_s) == pytest.approx(8 * FORWARD_S)
    assert pipeline.forward_s[7] == pytest.approx(2 * pipeline.forward_s[0])
    assert pipeline.memory_bytes == CrossPipeRun.of(SLOW, COLUMNS["1f1b"]).pipeline.memory_bytes
