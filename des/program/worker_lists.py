"""Lists of operations of the workers of pipelines, from the orders of a schedule."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from des.program.actions import COMPUTE, NONE, PASSES, SEND, WAIT
from des.program.draft import share_lists
from des.program.program import OperationList, Worker
from des.schedules import Order, Orders

FLOWS_PER_STAGE = 2
"""Flows that a stage receives, one after the other: activations, then gradients."""

_PORTS_PER_STAGE = 4
"""Flows of a stage: activations in, gradients in, activations out, gradients out."""


@lru_cache(maxsize=256)
def worker_lists(
    orders: Orders, replica_sizes: tuple[int, ...], device_of_stage: tuple[int, ...]
) -> tuple[tuple[OperationList, ...], tuple[Worker, ...]]:
    """Turn the orders of all workers into lists that wait for inputs and send outputs."""
    ends = np.cumsum(replica_sizes).tolist()
    inner_borders = set(range(1, ends[-1])) - set(ends)  # by the stage behind each
    stages = [tuple(dict.fromkeys(operation.stage for operation in order)) for order in orders]
    flows = [tuple(flow for one in own for flow in _flows_of(one, inner_borders)) for own in stages]
    lists = share_lists(map(_operations, orders, stages, flows))
    number_of = {each: number for number, each in enumerate(dict.fromkeys(lists))}
    devices = [device_of_stage[own[0]] if own else NONE for own in stages]
    workers = map(Worker, map(number_of.__getitem__, lists), devices, stages, flows)
    return tuple(number_of), tuple(workers)


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
