"""Pipeline schedules: orders of operations for every worker, each by name."""

from collections.abc import Callable
from functools import lru_cache

from des.schedules.check import (
    DeadlockError,
    check_order_memory,
    check_orders,
    completion_order,
    most_held,
    peaks_held,
)
from des.schedules.flush import gpipe, one_f_one_b
from des.schedules.operations import MESSAGE_OF, Operation, Order, Orders, Pass
from des.schedules.pipeline import Border, Pipeline
from des.schedules.recurrence import Timing, timing_of
from des.schedules.zero_bubble import zb_h1, zb_h2

SCHEDULES: dict[str, Callable[[int, int], Orders]] = {
    "gpipe": gpipe,
    "1f1b": one_f_one_b,
    "zb_h1": zb_h1,
    "zb_h2": zb_h2,
}
"""Schedules by the name users write."""

DEFAULT_SCHEDULE = "1f1b"

__all__ = [
    "DEFAULT_SCHEDULE",
    "MESSAGE_OF",
    "SCHEDULES",
    "Border",
    "DeadlockError",
    "Operation",
    "Order",
    "Orders",
    "Pass",
    "Pipeline",
    "Timing",
    "check_order_memory",
    "check_orders",
    "completion_order",
    "most_held",
    "peaks_held",
    "schedule_named",
    "stage_orders",
    "timing_of",
]


def schedule_named(name: str) -> Callable[[int, int], Orders]:
    """Look up a schedule.

    Raises
    ------
    ValueError
        If there is no such schedule; the message lists those there are.
    """
    if name not in SCHEDULES:
        raise ValueError(f"schedule: must be one of {', '.join(SCHEDULES)}; got {name!r}")
    return SCHEDULES[name]


@lru_cache(maxsize=1024)
def stage_orders(name: str, num_stages: int, num_microbatches: int) -> Orders:
    """Orders of all stages under a named schedule, remembered for the next call."""
    return schedule_named(name)(num_stages, num_microbatches)
