"""Workers and operations of a program."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from des.compiled.kernels.program import OPERATION, WORKER
from des.schedules import Orders, Pass

PASSES: tuple[Pass, ...] = ("F", "B", "D", "W")
"""Passes by number."""


@lru_cache(maxsize=256)
def operations_of(orders: Orders, sizes: tuple[int, ...], num_microbatches: int) -> np.ndarray:
    """Operations of all workers, with the messages that they wait for and send.

    Parameters
    ----------
    sizes
        Number of stages of each replica.
    num_microbatches
        Of the whole workload, by which messages are numbered.
    """
    ends = np.cumsum(sizes).tolist()
    first_stages, last_stages = {0, *ends}, {end - 1 for end in ends}
    records = []
    for order in orders:
        for kind, microbatch, stage in order:
            source = target = -1  # flows
            if kind == "F":
                source = -1 if stage in first_stages else 2 * stage
                target = -1 if stage in last_stages else 2 * (stage + 1)
            elif kind in "BD":
                source = -1 if stage in last_stages else 2 * stage + 1
                target = -1 if stage in first_stages else 2 * (stage - 1) + 1
            waits_for, sends = (
                -1 if flow < 0 else flow * num_microbatches + microbatch
                for flow in (source, target)
            )
            records.append((4 * stage + PASSES.index(kind), waits_for, sends))
    return np.array(records, OPERATION)


@lru_cache(maxsize=256)
def operation_columns(orders: Orders) -> tuple[tuple[Any, ...], ...]:
    """Kinds, microbatches and stages of all operations, worker by worker."""
    return tuple(zip(*(operation for order in orders for operation in order), strict=True))


def workers_of(orders: Orders, devices: Sequence[int]) -> np.ndarray:
    """Rows of each worker's operations, and whether another one shares its device.

    ``devices`` has that of each stage; a worker without operations has none.
    """
    workers = np.zeros(len(orders), WORKER)
    workers["end_operation"] = np.cumsum([len(order) for order in orders])
    workers["first_operation"] = workers["end_operation"] - [len(order) for order in orders]
    device_of = [devices[order[0].stage] if order else -1 for order in orders]
    workers["device"] = device_of
    workers["is_alone"] = [device_of.count(device) == 1 for device in device_of]
    return workers


def workers_of_stages(orders: Orders, num_stages: int) -> list[int]:
    """Worker that does each stage."""
    workers = [-1] * num_stages
    for worker, order in enumerate(orders):
        for stage in {operation.stage for operation in order}:
            workers[stage] = worker
    return workers
