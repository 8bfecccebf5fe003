"""Orders of passes, and how many microbatches they hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ALLOWED_SCHEDULES, STATIC_SCHEDULES

from des import Operation
from des.schedules import (
    check_orders,
    completion_order,
    most_held,
    schedule_named,
    stage_orders,
)

NAMES = STATIC_SCHEDULES
STAGES, MICROBATCHES = st.integers(1, 8), st.integers(1, 16)


def written(order: tuple[Operation, ...]) -> str:
    """An order as text, such as ``"F0 B0"``."""
    return " ".join(f"{kind}{microbatch}" for kind, microbatch, _ in order)


def order(text: str, stage: int) -> tuple[Operation, ...]:
    """The order of a stage that a text such as ``"F0 B0"`` says."""
    return tuple(Operation(item[0], int(item[1:]), stage) for item in text.split())


@pytest.mark.parametrize(
    ("name", "num_stages", "num_microbatches", "orders"),
    [
        ("gpipe", 2, 3, ["F0 F1 F2 B0 B1 B2"] * 2),
        # Narayanan et al., SC'21, figure 4 with 4 stages; 5 microbatches here.
        (
            "1f1b",
            4,
            5,
            [
                "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4",
                "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4",
                "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4",
                "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4",
            ],
        ),
        # Of few microbatches it is GPipe but for the last stages.
        ("1f1b", 4, 2, ["F0 F1 B0 B1"] * 3 + ["F0 B0 F1 B1"]),
    ],
)
def test_orders_by_hand(name, num_stages, num_microbatches, orders):
    assert [written(one) for one in stage_orders(name, num_stages, num_microbatches)] == orders


@pytest.mark.parametrize("name", NAMES)
@given(num_stages=STAGES, num_microbatches=MICROBATCHES)
def test_every_schedule_does_each_pass_once_and_in_order(name, num_stages, num_microbatches):
    orders = stage_orders(name, num_stages, num_microbatches)

    check_orders(orders, range(num_stages), num_microbatches)
    assert len(list(completion_order(orders, num_stages))) == sum(map(len, orders))
    for one in orders:
        for kind in sorted({operation.kind for operation in one}):
            passes = [operation.microbatch for operation in one if operation.kind == kind]
            assert passes == list(range(num_microbatches))


@given(num_stages=STAGES, num_microbatches=MICROBATCHES)
def test_1f1b_holds_as_many_microbatches_as_stages_are_left(num_stages, num_microbatches):
    """min(p - s, m), Narayanan et al., SC'21, section 2.2.1."""
    assert most_held(stage_orders("1f1b", num_stages, num_microbatches), num_stages) == tuple(
        min(num_stages - stage, num_microbatches) for stage in range(num_stages)
    )


@given(num_stages=STAGES, num_microbatches=MICROBATCHES)
def test_gpipe_holds_all_microbatches(num_stages, num_microbatches):
    expected = (num_microbatches,) * num_stages
    assert most_held(stage_orders("gpipe", num_stages, num_microbatches), num_stages) == expected


def test_an_unknown_schedule_is_refused():
    with pytest.raises(ValueError, match=f"{ALLOWED_SCHEDULES} 'GPipe'"):
        schedule_named("GPipe")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["F0 F1 B0 B1"], "stage 1 must do F and B, or F, D and W, of microbatch 0; got nothing"),
        (["F0 F1 B0 B1"] * 3, "stages must be numbered 0 to 1, got F0 of stage 2"),
        (["F0 F1 B0 B1", "F0 F1 B0"], "stage 1 must do F and B, .* of microbatch 1; got F$"),
        (["F0 F1 B0 B1 B1", "F0 F1 B0 B1"], "every pass .* once, got B1 of stage 0 2x"),
        (["F0 F1 B0 B2", "F0 F1 B0 B1"], "every pass of each of 2 .*, got B2 of stage 0 1x"),
        (["", "F0 F1 B0 B1"], "stage 0 must do F and B, .*; got nothing"),
        (["F0 F1 B0 D1", "F0 F1 B0 B1"], "stage 0 must do .* of microbatch 1; got F, D$"),
        (["F0 F1 B0 D1 W1 B1", "F0 F1 B0 B1"], "stage 0 must .* microbatch 1; got F, B, D, W$"),
        (["F0 F1 D0 W1 D1 W0", "F0 F1 B0 B1"], "stage 0 must do D1 before W1, got the reverse"),
        (["F0 F1 B0 B1", "F0 B1 F1 B0"], "stage 1 must do F1 before B1, got the reverse"),
    ],
)
def test_invalid_orders_are_refused(texts, message):
    with pytest.raises(ValueError, match=f"schedule: {message}"):
        check_orders([order(text, stage) for stage, text in enumerate(texts)], range(2), 2)


def test_orders_of_several_workers_are_checked_for_devices():
    """Stage 0 in two orders; stages of two devices in one."""
    one, two = order("F0 B0", 0), order("F0 B0", 1)

    with pytest.raises(ValueError, match="a stage must be in one order, got F0 of stage 0 in two"):
        check_orders([one, one], [0], 1)
    with pytest.raises(ValueError, match="an order must hold stages of one device"):
        check_orders([one + two], [0, 1], 1)
    check_orders([one + two], [0, 0], 1)
