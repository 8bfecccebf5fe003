"""Static schedules as tables: all operations of an iteration in one order that suits them all."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from des.schedules import MESSAGE_OF, Operation, Pass, Pipeline, stage_orders, timing_of
from des.schedules.check import input_of

PASSES: tuple[Pass, ...] = ("F", "B", "D", "W")
"""Kinds of passes in the order of their numbers."""

NOTHING = 0
"""Arrival slot of an operation that waits for nothing."""


@dataclass(frozen=True, kw_only=True)
class OperationTable:
    """Operations in an order in which each comes after all that it waits for.

    Attributes
    ----------
    rows
        An operation a row, shaped (num_operations, 5): stage; number of its kind; slot of the
        arrival that it waits for; 1 + wire that its output takes, 0 for none; slot of the arrival
        of its output. Over the border behind stage ``b`` wire ``2 b`` leads down and ``2 b + 1``
        up.
    operations
        Operation of each row.
    num_slots
        Slots for arrivals; one is used again when what waited for it has started.
    span_rows
        Rows stage by stage, in order of execution.
    sent_rows
        Rows whose outputs take each wire, in order, shaped (num_wires, num_microbatches).
    """

    rows: np.ndarray
    operations: tuple[Operation, ...]
    num_stages: int
    num_slots: int
    span_rows: np.ndarray
    sent_rows: np.ndarray


@lru_cache(maxsize=1024)
def operation_table(schedule: str, num_stages: int, num_microbatches: int) -> OperationTable:
    """Lay out a static schedule.

    The order is that of the starts where every pass takes a unit of time and messages take none.
    So few arrivals are waited for at any moment, and what is side by side can be worked out at
    once, as it belongs to several stages.
    """
    operations = _in_order_of_starts(schedule, num_stages, num_microbatches)
    rows = np.zeros((len(operations), 5), dtype=np.int32)
    slot_of: dict[tuple[str, int, int], int] = {}
    unused: list[int] = []
    num_slots = 1
    for row, operation in enumerate(operations):
        kind, _, stage = operation
        slot, wire, made_slot = NOTHING, -1, NOTHING
        needed, made = input_of(operation, num_stages), _output_of(operation, num_stages)
        if needed is not None:
            slot = slot_of.pop(needed)
            unused.append(slot)
        if made is not None:
            wire = 2 * stage if kind == "F" else 2 * stage - 1
            if not unused:
                unused.append(num_slots)
                num_slots += 1
            made_slot = slot_of[made] = unused.pop()
        rows[row] = stage, PASSES.index(kind), slot, 1 + wire, made_slot
    rows.flags.writeable = False
    senders = [np.flatnonzero(rows[:, 3] == 1 + wire) for wire in range(2 * (num_stages - 1))]
    return OperationTable(
        rows=rows,
        operations=operations,
        num_stages=num_stages,
        num_slots=num_slots,
        span_rows=np.argsort(rows[:, 0], kind="stable"),
        sent_rows=np.array(senders, dtype=np.int64).reshape(len(senders), num_microbatches),
    )


def _in_order_of_starts(
    schedule: str, num_stages: int, num_microbatches: int
) -> tuple[Operation, ...]:
    orders = stage_orders(schedule, num_stages, num_microbatches)
    timing = timing_of(orders, Pipeline.uniform(num_stages, num_microbatches))
    starts = [
        (start_s, operation.stage, operation)
        for order, starts_s in zip(orders, timing.start_s, strict=True)
        for operation, start_s in zip(order, starts_s, strict=True)
    ]
    return tuple(operation for *_, operation in sorted(starts, key=lambda each: each[:2]))


def _output_of(operation: Operation, num_stages: int) -> tuple[str, int, int] | None:
    """Key of an output that another stage waits for, as `input_of` gives it; else None."""
    kind, microbatch, stage = operation
    if kind == "W" or stage == (num_stages - 1 if kind == "F" else 0):
        return None
    return (MESSAGE_OF[kind], microbatch, stage)
