"""Orders of torch's schedules that are none of ours."""

from des import Operation
from des.schedules import Order, Orders, Pass


def torch_zbv(num_ranks: int, num_microbatches: int) -> Orders:
    """Zero bubble in a V as torch has it: each rank holds a stage on the way down and one back.

    References
    ----------
    .. [1] PyTorch 2.13, torch/distributed/pipelining/schedules.py, ``ScheduleZBVZeroBubble``.

    Examples
    --------
    >>> print(*map(str, torch_zbv(1, 1)[0]), sep=", ")
    F0 of stage 0, F0 of stage 1, D0 of stage 1, W0 of stage 1, D0 of stage 0, W0 of stage 0
    """
    return tuple(_order(rank, num_ranks, num_microbatches) for rank in range(num_ranks))


def _order(rank: int, num_ranks: int, num_microbatches: int) -> Order:
    most = max(2 * num_ranks - 1, num_microbatches)  # those that fill it; the rest is left out
    stages = rank, 2 * num_ranks - 1 - rank
    found: list[Operation] = []
    done = {(kind, stage): 0 for kind in "FDW" for stage in stages}

    def do(kinds: str, stage: int) -> None:
        for kind in kinds:
            passes: Pass = "F" if kind == "F" else "D" if kind == "D" else "W"
            if done[kind, stage] < num_microbatches:
                found.append(Operation(passes, done[kind, stage], stage))
            done[kind, stage] += 1

    down, back = stages
    for _ in range(2 * (num_ranks - rank) - 1):
        do("F", down)
    for _ in range(rank):
        do("F", back)
        do("F", down)
    for _ in range(num_ranks - rank):
        do("FDW", back)
    while done["F", back] < done["F", down] or done["F", down] < most:
        if done["F", down] < most:
            do("F", down)
        do("DW", down)
        do("FDW", back)
    for _ in range(rank):
        do("D", down)
        do("D", back)
    for _ in range(num_ranks - rank):
        do("DW", down)
    for stage in (back, down):
        while done["W", stage] < done["D", stage]:
            do("W", stage)
    return tuple(found)
