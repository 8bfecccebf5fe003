"""The recurrence over lanes gives the simulation's times to the last bit, wherever it applies."""

import dataclasses
from itertools import chain

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from recurrence_cases import assert_foreseen
from sharing import FEW, parallel_cases
from strategies import STATIC_SCHEDULES, cases, corrections, plan, unit_workload, world

from des.compiled.operation_table import NOTHING, PASSES, operation_table
from des.schedules import stage_orders
from des.schedules.check import input_of


@given(
    schedule=st.sampled_from(STATIC_SCHEDULES),
    num_stages=st.integers(1, 6),
    num_microbatches=st.integers(1, 10),
)
def test_in_a_table_every_operation_finds_its_message_in_its_slot(
    schedule, num_stages, num_microbatches
):
    table = operation_table(schedule, num_stages, num_microbatches)
    slots = {}
    orders = [[] for _ in range(num_stages)]
    for operation, row in zip(table.operations, table.rows.tolist(), strict=True):
        stage, kind, slot, wire, made = row
        orders[stage].append(operation)
        assert (PASSES[kind], stage) == (operation.kind, operation.stage)
        needed = input_of(operation, num_stages)
        assert (slot == NOTHING) == (needed is None)
        assert slots.pop(slot, None) == needed
        if wire:
            upward = operation.kind != "F"
            assert wire - 1 == 2 * (stage - upward) + upward
            assert made not in slots
            slots[made] = ("B" if upward else "F", operation.microbatch, stage)
            assert NOTHING < made < table.num_slots
    assert not slots
    assert tuple(map(tuple, orders)) == stage_orders(schedule, num_stages, num_microbatches)
    assert [table.operations[row] for row in table.span_rows] == list(chain(*orders))


@settings(max_examples=examples(3 * FEW))
@given(
    case=cases(fully=True, single_visit=True),
    window_bytes=st.none() | st.floats(1e5, 1e9),
    compression=st.sampled_from([1.0, 4.0]),
    corrected=corrections(),
)
def test_a_foreseeable_iteration_is_the_simulated_one(case, window_bytes, compression, corrected):
    """Whatever the schedule, the TCP window and the overhead of messages."""
    topology, workload, chosen = case
    transport = dataclasses.replace(topology.transport, window_bytes=window_bytes)
    topology = dataclasses.replace(topology, transport=transport)
    chosen = dataclasses.replace(chosen, activation_compression=compression)

    assert_foreseen(topology, workload, chosen, corrected)


@settings(max_examples=examples(FEW))
@given(
    case=parallel_cases(fully=True, single_visit=True, max_replicas=1),
    corrected=corrections(),
)
def test_so_is_one_with_several_devices_in_a_domain(case, corrected):
    topology, workload, chosen = case
    alone = tuple(dataclasses.replace(one, data=1) for one in chosen.parallelism)

    assert_foreseen(topology, workload, dataclasses.replace(chosen, parallelism=alone), corrected)


@settings(max_examples=examples(2 * FEW))
@given(schedule=st.sampled_from(STATIC_SCHEDULES), num_bytes=st.integers(0, 4))
def test_so_is_one_whose_messages_end_just_when_passes_do(schedule, num_bytes):
    """Whole seconds throughout, so that ends and starts coincide."""
    topology = world("ABC", dict.fromkeys(("AB", "BC", "CB", "BA"), (1.0, 1.0)))
    workload = unit_workload([(1, 2)] * 3, num_microbatches=4, message_bytes=float(num_bytes))

    assert_foreseen(topology, workload, plan(0, 1, 2, schedule=schedule))
