"""Pipeline schedules: orders of operations for every worker, each by name."""

from des.schedules.check import (
    DeadlockError,
    check_order_memory,
    check_orders,
    completion_order,
    most_held,
    peaks_held,
)
from des.schedules.operations import MESSAGE_OF, Operation, Order, Orders, Pass
from des.schedules.pipeline import Border, Pipeline
from des.schedules.recurrence import Timing, timing_of
from des.schedules.registry import (
    DEFAULT_SCHEDULE,
    SCHEDULES,
    Pace,
    Schedule,
    asks_times,
    device_orders,
    has_pace,
    is_static,
    pace_of,
    require_quick,
    schedule_named,
    schedule_orders,
    stage_orders,
)

__all__ = [
    "DEFAULT_SCHEDULE",
    "MESSAGE_OF",
    "SCHEDULES",
    "Border",
    "DeadlockError",
    "Operation",
    "Order",
    "Orders",
    "Pace",
    "Pass",
    "Pipeline",
    "Schedule",
    "Timing",
    "asks_times",
    "check_order_memory",
    "check_orders",
    "completion_order",
    "device_orders",
    "has_pace",
    "is_static",
    "most_held",
    "pace_of",
    "peaks_held",
    "require_quick",
    "schedule_named",
    "schedule_orders",
    "stage_orders",
    "timing_of",
]
