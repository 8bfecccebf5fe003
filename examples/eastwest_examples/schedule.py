"""A schedule: each microbatch passes the pipeline there and back before the next one enters.

One row of the entry-point group ``eastwest.schedules`` makes it known to every command:
``eastwest simulate --schedule one_by_one``.
"""

from des.schedules.operations import Operation, Orders
from des.schedules.registry import Schedule


def one_by_one(num_stages: int, num_microbatches: int) -> Orders:
    """Order of each stage: forward and backward of a microbatch in turn.

    Examples
    --------
    >>> [str(each) for each in one_by_one(2, 2)[1]]
    ['F0 of stage 1', 'B0 of stage 1', 'F1 of stage 1', 'B1 of stage 1']
    """
    return tuple(
        tuple(
            Operation(kind, microbatch, stage)
            for microbatch in range(num_microbatches)
            for kind in ("F", "B")
        )
        for stage in range(num_stages)
    )


ONE_BY_ONE = Schedule("one microbatch at a time", lambda p, m, _: one_by_one(p, m))
