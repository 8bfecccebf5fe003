"""Pipeline schedules: the order of forward and backward passes on every stage."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Literal, NamedTuple, get_args

Pass = Literal["F", "B"]
"""Forward or backward pass of a stage over one microbatch."""


class Operation(NamedTuple):
    """One pass of one stage over one microbatch."""

    kind: Pass
    microbatch: int


StageOrder = tuple[Operation, ...]
Schedule = Callable[[int, int], tuple[StageOrder, ...]]
"""Orders of all stages, given the numbers of stages and microbatches."""


def gpipe(num_stages: int, num_microbatches: int) -> tuple[StageOrder, ...]:
    """All forwards, then all backwards (Y. Huang et al., NeurIPS'19)."""
    forwards = tuple(Operation("F", microbatch) for microbatch in range(num_microbatches))
    backwards = tuple(Operation("B", microbatch) for microbatch in range(num_microbatches))
    return (forwards + backwards,) * num_stages


def one_f_one_b(num_stages: int, num_microbatches: int) -> tuple[StageOrder, ...]:
    """Few forwards to fill the pipeline, then one forward, one backward in turn.

    Stage ``s`` of ``p`` warms up with ``min(p - 1 - s, m)`` forwards (PipeDream-Flush, D. Narayanan
    et al., ICML'21; Megatron-LM).

    Examples
    --------
    >>> ["".join(f"{kind}{j} " for kind, j in order) for order in one_f_one_b(2, 3)]
    ['F0 F1 B0 F2 B1 B2 ', 'F0 B0 F1 B1 F2 B2 ']
    """
    return tuple(
        _warm_up_then_alternate(min(num_stages - 1 - stage, num_microbatches), num_microbatches)
        for stage in range(num_stages)
    )


def _warm_up_then_alternate(num_warm_up: int, num_microbatches: int) -> StageOrder:
    order = [Operation("F", microbatch) for microbatch in range(num_warm_up)]
    for microbatch in range(num_warm_up, num_microbatches):
        order += [Operation("F", microbatch), Operation("B", microbatch - num_warm_up)]
    drained = num_microbatches - num_warm_up
    order += [Operation("B", microbatch) for microbatch in range(drained, num_microbatches)]
    return tuple(order)


SCHEDULES: dict[str, Schedule] = {"gpipe": gpipe, "1f1b": one_f_one_b}
"""Schedules by the name users write."""

DEFAULT_SCHEDULE = "1f1b"


def schedule_named(name: str) -> Schedule:
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
def stage_orders(name: str, num_stages: int, num_microbatches: int) -> tuple[StageOrder, ...]:
    """Orders of all stages under a named schedule, remembered for the next call."""
    return schedule_named(name)(num_stages, num_microbatches)


@lru_cache(maxsize=1024)
def most_held(orders: tuple[StageOrder, ...]) -> tuple[int, ...]:
    """Most microbatches whose activations each stage holds at once.

    A microbatch is held from the start of its forward to the end of its backward pass.

    Examples
    --------
    >>> most_held(stage_orders("1f1b", 4, 8)), most_held(stage_orders("gpipe", 2, 8))
    ((4, 3, 2, 1), (8, 8))
    """
    return tuple(
        max(accumulate(1 if operation.kind == "F" else -1 for operation in order))
        for order in orders
    )


def check_orders(orders: Sequence[StageOrder], num_stages: int, num_microbatches: int) -> None:
    """Refuse orders that are not every pass of every microbatch once, forward before backward.

    Raises
    ------
    ValueError
        Naming the stage and what is missing, repeated or too early.
    """
    if len(orders) != num_stages:
        raise ValueError(f"schedule: must give one order a stage, {num_stages}; got {len(orders)}")
    for stage, order in enumerate(orders):
        position = {operation: index for index, operation in enumerate(order)}
        wanted = {
            Operation(kind, microbatch)
            for kind in get_args(Pass)
            for microbatch in range(num_microbatches)
        }
        if position.keys() != wanted or len(order) != len(wanted):
            raise ValueError(
                f"schedule: stage {stage} must do F and B of each of {num_microbatches} "
                f"microbatches once, got {len(order)} operations, {len(position)} distinct"
            )
        for microbatch in range(num_microbatches):
            if position[Operation("B", microbatch)] < position[Operation("F", microbatch)]:
                raise ValueError(
                    f"schedule: stage {stage} must do F{microbatch} before B{microbatch}, "
                    "got the reverse"
                )
