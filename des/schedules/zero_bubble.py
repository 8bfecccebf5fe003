"""Hand-made zero-bubble schedules: the weight gradients fill what would be idle time."""

from functools import lru_cache

from des.schedules.operations import Operation, Order, Orders


@lru_cache(maxsize=256)
def zb_h1(num_stages: int, num_microbatches: int, depth: float = 1.0) -> Orders:
    """1F1B in its memory, with weight gradients put off (P. Qi et al., ICLR'24, ZB-H1).

    Stage ``s`` of ``p`` warms up as 1F1B does and keeps the weight gradients ``s`` microbatches
    behind the input gradients. Bubble of equal stages: ``(p - 1)(F + D - W)``.

    Parameters
    ----------
    depth
        Times as many forwards to begin with, and times as far behind the weight gradients: both
        hide links, the first after forwards, the second so that input gradients leave early.
    """
    return tuple(
        _delayed(
            stage,
            min(int(depth * (num_stages - 1 - stage)), num_microbatches),
            int(depth * stage),
            num_microbatches,
        )
        for stage in range(num_stages)
    )


def zb_h2(num_stages: int, num_microbatches: int) -> Orders:
    """More forwards at the start in up to twice the memory (P. Qi et al., ICLR'24, ZB-H2).

    It is ZB-H1 of depth 2: stage ``s`` of ``p`` does ``min(2 (p - s) - 1, m)`` forwards before its
    first input gradient, and keeps the weight gradients ``2 s`` microbatches behind. Bubble of
    equal stages: ``(p - 1)(F + D - 2 W)``.
    """
    return zb_h1(num_stages, num_microbatches, 2.0)


def _delayed(stage: int, num_warm_up: int, delay: int, num_microbatches: int) -> Order:
    """Warm up, then F and D in turn, with W ``delay`` microbatches after D."""
    order = [Operation("F", microbatch, stage) for microbatch in range(num_warm_up)]
    for microbatch in range(num_microbatches):
        if num_warm_up + microbatch < num_microbatches:
            order.append(Operation("F", num_warm_up + microbatch, stage))
        order.append(Operation("D", microbatch, stage))
        if microbatch >= delay:
            order.append(Operation("W", microbatch - delay, stage))
    return _finish(order, stage, num_microbatches)


def _finish(order: list[Operation], stage: int, num_microbatches: int) -> Order:
    """Append the weight gradients that are left."""
    done = sum(operation.kind == "W" for operation in order)
    rest = (Operation("W", microbatch, stage) for microbatch in range(done, num_microbatches))
    return (*order, *rest)
