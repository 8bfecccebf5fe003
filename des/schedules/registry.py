"""Schedules by the name users write."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from des.base.checks import MOST_ITEMS
from des.base.lazy import lazy_imports
from des.base.offers import OfferedRows
from des.schedules.automatic import automatic_zero_bubble
from des.schedules.check import check_order_memory, check_schedule
from des.schedules.deep_1f1b import deep_1f1b
from des.schedules.flush import gpipe, one_f_one_b
from des.schedules.greedy import greedy
from des.schedules.interleaved import interleaved_1f1b, loop_devices
from des.schedules.operations import Orders
from des.schedules.pipeline import Pipeline
from des.schedules.zero_bubble import zb_h1, zb_h2

with lazy_imports(__name__):
    from des.schedules import exact


class Pace(NamedTuple):
    """Pace of stage ``s`` of ``p``: ``ahead + floor(depth (p - 1 - s))`` forwards, then in turn.

    Weight gradients stay ``floor(behind s)`` microbatches after input gradients; None where the
    backward pass is whole.
    """

    depth: float
    behind: float | None = None
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """Maker of a schedule's orders.

    A *static* one asks for the numbers of stages and microbatches alone and has a worker a stage,
    one ``of_devices`` for the device of each stage too; others look at the pipeline: its times,
    borders and memory. ``factor`` says what a
    suffix such as ``_2x`` means, where it means something; orders of a pipeline are held to the
    memory that it gives, if it ``limits_memory``. A slow one takes minutes a pipeline.
    """

    summary: str
    static: Callable[[int, int, float | None], Orders] | None = None
    of_devices: Callable[[Sequence[int], int, float | None], Orders] | None = None
    of_pipeline: Callable[[Pipeline, float | None], Orders] | None = None
    factor: str | None = None
    pace: Callable[[float], Pace] | None = None
    is_slow: bool = False
    limits_memory: bool = True


_MEMORY = "times the activation memory of 1f1b, instead of all there is"
EXACT_WORK = 20.0
"""Search time of ``exact``, in CP-SAT's deterministic time: a minute or two."""

_NEVER_S = 1e9
"""A limit on wall-clock time that nothing meets, so that equal searches end equally."""


def with_memory(pipeline: Pipeline, factor: float | None) -> Pipeline:
    """Give every device a multiple of what 1F1B takes on the first one: ``p`` microbatches.

    None leaves the memory as it is.
    """
    if factor is None:
        return pipeline
    held = [0.0] * pipeline.num_devices
    for device, activations in zip(
        pipeline.device_of_stage, pipeline.activation_bytes, strict=True
    ):
        held[device] += activations
    if not all(held):  # nothing is kept, so nothing limits
        return pipeline
    room = tuple(factor * pipeline.num_devices * each for each in held)
    return replace(pipeline, memory_bytes=room)


def _interleave(
    device_of_stage: Sequence[int], num_microbatches: int, factor: float | None
) -> Orders:
    num_devices = len(set(device_of_stage))
    num_chunks, rest = divmod(len(device_of_stage), num_devices)
    if num_chunks == 1:
        raise ValueError(
            "schedule: interleaved_1f1b needs several stages a device, got one; with one it would "
            "be 1f1b_2x. Domains that come back in the placement have several, or a domain's own "
            "pipeline with chunks, such as parallelism 8x1x4v3"
        )
    if rest or device_of_stage != loop_devices(num_devices, num_chunks):
        raise ValueError(
            "schedule: interleaved_1f1b needs a placement that goes round the devices in the same "
            f"order each time, got devices {device_of_stage}"
        )
    size = round((factor or 1.0) * num_devices)
    return interleaved_1f1b(num_devices, num_chunks, num_microbatches, size)


_OWN: dict[str, Schedule] = {
    "gpipe": Schedule(
        "all forwards, then all backwards",
        lambda p, m, _: gpipe(p, m),
        pace=lambda _: Pace(0.0, ahead=MOST_ITEMS),
    ),
    "1f1b": Schedule(
        "one forward, one backward in turn",
        lambda p, m, depth: one_f_one_b(p, m, 1.0 if depth is None else depth),
        factor="times as many forwards to begin with",
        pace=Pace,
    ),
    "deep_1f1b": Schedule(
        "1f1b with as many forwards to begin with as hide the links",
        of_pipeline=lambda pipeline, factor: deep_1f1b(with_memory(pipeline, factor)),
        factor=_MEMORY,
    ),
    "interleaved_1f1b": Schedule(
        "1f1b over several stages a device",
        of_devices=_interleave,
        factor="times as many microbatches in a group as devices",
        limits_memory=False,
    ),
    "zb_h1": Schedule(
        "zero bubble in the memory of 1f1b",
        lambda p, m, depth: zb_h1(p, m, 1.0 if depth is None else depth),
        factor="times as many forwards to begin with, weight gradients as much further behind",
        pace=lambda depth: Pace(depth, depth),
    ),
    "zb_h2": Schedule(
        "zero bubble in twice that memory",
        lambda p, m, _: zb_h2(p, m),
        pace=lambda _: Pace(2.0, 2.0),
    ),
    "zb_auto": Schedule(
        "zero bubble by search; on a placement there and back it is ZB-V",
        of_pipeline=lambda pipeline, factor: automatic_zero_bubble(
            with_memory(pipeline, factor), "makespan_s"
        ),
        factor=_MEMORY,
    ),
    "greedy": Schedule(
        "whatever can start first, knowing links and memory (CrossPipe)",
        of_pipeline=lambda pipeline, factor: greedy(with_memory(pipeline, factor)),
        factor=_MEMORY,
    ),
    "exact": Schedule(
        "the best that constraint programming finds in a limited search",
        of_pipeline=lambda pipeline, factor: (
            exact.exact(
                with_memory(pipeline, factor), time_limit_s=_NEVER_S, work_limit=EXACT_WORK
            ).orders
        ),
        factor=_MEMORY,
        is_slow=True,
    ),
}


def _schedule_offered(name: str, loaded: object) -> Schedule:
    if not isinstance(loaded, Schedule):
        raise ValueError(f"schedule {name}: must be a des.schedules.registry.Schedule")
    return loaded


SCHEDULES: Mapping[str, Schedule] = OfferedRows(_OWN, "eastwest.schedules", _schedule_offered)
"""All there are; names may carry a factor where it means something, as in ``1f1b_4x``.

Other packages add theirs by entry points of the group ``eastwest.schedules``.
"""

DEFAULT_SCHEDULE = "1f1b"


@lru_cache(maxsize=1024)
def schedule_named(name: str) -> tuple[Schedule, float | None]:
    """Look up a schedule and the factor in its name, if any.

    Raises
    ------
    ValueError
        If there is no such schedule; the message lists those there are.
    """
    match = re.fullmatch(r"(.+?)_([0-9]+(?:\.[0-9]+)?)x", name)
    base, factor = (name, None) if match is None else (match[1], float(match[2]))
    schedule = SCHEDULES.get(base)
    if schedule is None or (factor is not None and schedule.factor is None):
        known = (each + ("[_2x]" if found.factor else "") for each, found in SCHEDULES.items())
        raise ValueError(f"schedule: must be one of {', '.join(known)}; got {name!r}")
    if factor is not None and not 0 < factor <= 1000:
        raise ValueError(f"schedule: factor must be above 0 and at most 1000, got {name!r}")
    return schedule, factor


def require_quick(owner: str, name: str) -> None:
    """Refuse a schedule that takes too long to be made for many plans."""
    if schedule_named(name)[0].is_slow:
        quick = ", ".join(each for each, found in SCHEDULES.items() if not found.is_slow)
        raise ValueError(
            f"{owner}: schedule must be quick to make, one of {quick}; got {name!r}, which takes "
            "minutes a plan"
        )


def is_static(name: str) -> bool:
    """Whether a schedule asks for the numbers of stages and microbatches alone."""
    return schedule_named(name)[0].static is not None


def asks_times(name: str) -> bool:
    """Whether a schedule asks for more than the devices of stages and microbatches."""
    return schedule_named(name)[0].of_pipeline is not None


@lru_cache(maxsize=1024)
def pace_of(name: str) -> Pace:
    """Look up the pace of a schedule that is all told by one.

    Raises
    ------
    ValueError
        If the schedule has none.
    """
    schedule, factor = schedule_named(name)
    if schedule.pace is None:
        paced = ", ".join(each for each, found in SCHEDULES.items() if found.pace)
        raise ValueError(f"schedule: must have a pace, as {paced} have; got {name!r}")
    return schedule.pace(1.0 if factor is None else factor)


def has_pace(name: str) -> bool:
    """Whether a schedule is all told by how many forwards come first and what is put off."""
    return schedule_named(name)[0].pace is not None


@lru_cache(maxsize=1024)
def stage_orders(name: str, num_stages: int, num_microbatches: int) -> Orders:
    """Orders of all stages under a static schedule, checked and remembered for the next call.

    Raises
    ------
    ValueError
        If the orders cannot be executed, one stage each; it names schedule, stage and operation.
    """
    schedule, factor = schedule_named(name)
    assert schedule.static is not None, f"{name} looks at the pipeline"
    orders = schedule.static(num_stages, num_microbatches, factor)
    checked = check_schedule(name, orders, range(num_stages), num_microbatches)
    for stage, order in enumerate(checked):
        if order[0].stage != stage:
            raise ValueError(f"schedule {name}: order {stage} must be of its stage, got {order[0]}")
    return checked


@lru_cache(maxsize=1024)
def device_orders(name: str, device_of_stage: tuple[int, ...], num_microbatches: int) -> Orders:
    """Orders of all workers under a schedule that does not ask for times, as `stage_orders`."""
    schedule, factor = schedule_named(name)
    if schedule.of_devices is None:
        return stage_orders(name, len(device_of_stage), num_microbatches)
    orders = schedule.of_devices(device_of_stage, num_microbatches, factor)
    return check_schedule(name, orders, device_of_stage, num_microbatches)


@lru_cache(maxsize=1024)
def schedule_orders(name: str, pipeline: Pipeline) -> Orders:
    """Orders of all workers of a pipeline, remembered for the next call.

    Raises
    ------
    ValueError
        If the schedule cannot be made for the pipeline.
    """
    schedule, factor = schedule_named(name)
    if schedule.of_pipeline is None:
        return device_orders(name, pipeline.device_of_stage, pipeline.num_microbatches)
    orders = check_schedule(
        name,
        schedule.of_pipeline(pipeline, factor),
        pipeline.device_of_stage,
        pipeline.num_microbatches,
    )
    if schedule.factor is not None and schedule.limits_memory:
        check_order_memory(orders, with_memory(pipeline, factor))
    return orders
