"""Lists of operations of the workers of pipelines, from the orders of a schedule."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from des.program.program import COMPUTE, NONE, PASSES, SEND, WAIT, OperationList
from des.schedules import Order, Orders

FLOWS_PER_STAGE = 2
"""Flows that a stage receives, one after the other: activations, then gradients."""

_PORTS_PER_STAGE = 4
"""Flows of a stage: activations in, gradients in, activations out, gradients out."""


class OrderedWorker(NamedTuple):
    """A worker before it has a device: the list that it does, its stages and their flows."""

    operations: int
    stages: tuple[int, ...]
    flows: tuple[int, ...]


class ListTable:
    """Lists of operations of a program, each once."""

    def __init__(self, lists: Sequence[OperationList] = ()) -> None:
        self._number_of = {each: number for number, each in enumerate(lists)}

    @property
    def lists(self) -> tuple[OperationList, ...]:
        """Lists by number."""
        return tuple(self._number_of)

    def number(self, operations: OperationList) -> int:
        """Return the number of a list, which is added if it is new."""
        return self._number_of.setdefault(operations, len(self._number_of))


def shared_lists(operations: Iterable[Sequence[tuple[int, int, int]]]) -> list[OperationList]:
    """Make lists of operations; those that are alike are one."""
    arrays = [np.array(each, np.int32).reshape(-1, 3) for each in operations]
    found: dict[bytes, OperationList] = {}
    return [found.setdefault(each.tobytes(), OperationList(each)) for each in arrays]


@lru_cache(maxsize=256)
def worker_lists(
    orders: Orders, replica_sizes: tuple[int, ...]
) -> tuple[tuple[OperationList, ...], tuple[OrderedWorker, ...]]:
    """Turn the orders of all workers into lists that wait for inputs and send outputs."""
    ends = np.cumsum(replica_sizes).tolist()
    inner_borders = set(range(1, ends[-1])) - set(ends)  # by the stage behind each
    found = []
    for order in orders:
        stages = tuple(dict.fromkeys(operation.stage for operation in order))
        flows = tuple(flow for stage in stages for flow in _flows_of(stage, inner_borders))
        found.append((_operations(order, stages, flows), stages, flows))
    table = ListTable()
    lists = shared_lists(operations for operations, _, _ in found)
    workers = [
        OrderedWorker(table.number(own), stages, flows)
        for own, (_, stages, flows) in zip(lists, found, strict=True)
    ]
    return table.lists, tuple(workers)


def _flows_of(stage: int, inner_borders: set[int]) -> tuple[int, int, int, int]:
    """Flows of a stage in the order of its ports, `NONE` where the pipeline ends."""
    own = FLOWS_PER_STAGE * stage
    before, behind = stage in inner_borders, stage + 1 in inner_borders
    return (
        own if before else NONE,
        own + 1 if behind else NONE,
        own + FLOWS_PER_STAGE if behind else NONE,
        own + 1 - FLOWS_PER_STAGE if before else NONE,
    )


def _operations(
    order: Order, stages: Sequence[int], flows: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Put a wait before each pass that has an input, and a send behind each with an output."""
    slot_of = {stage: slot for slot, stage in enumerate(stages)}
    found = []
    for kind, microbatch, stage in order:
        first = _PORTS_PER_STAGE * slot_of[stage]
        source = first + (kind != "F")
        if kind != "W" and flows[source] != NONE:
            found.append((WAIT, source, microbatch))
        found.append((COMPUTE, first + PASSES.index(kind), microbatch))
        if kind != "W" and flows[source + 2] != NONE:
            found.append((SEND, source + 2, microbatch))
    return found
