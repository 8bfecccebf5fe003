"""Hand-made zero-bubble schedules: the weight gradients fill what would be idle time."""

from des.schedules.operations import Operation, Order, Orders


def zb_h1(num_stages: int, num_microbatches: int) -> Orders:
    """1F1B in its memory, with weight gradients put off (P. Qi et al., ICLR'24, ZB-H1).

    Stage ``s`` of ``p`` warms up as 1F1B does and keeps the weight gradients ``s`` microbatches
    behind the input gradients. Bubble of equal stages: ``(p - 1)(F + D - W)``.
    """
    return tuple(
        _delayed(stage, min(num_stages - 1 - stage, num_microbatches), stage, num_microbatches)
        for stage in range(num_stages)
    )


def zb_h2(num_stages: int, num_microbatches: int) -> Orders:
    """More forwards at the start in up to twice the memory (P. Qi et al., ICLR'24, ZB-H2).

    Stage ``s`` of ``p`` warms up with ``min(2 (p - s) - 1, m)`` forwards, after which each input
    gradient comes before the next forward, and keeps the weight gradients ``2 s`` microbatches
    behind. Bubble of equal stages: ``(p - 1)(F + D - 2 W)``.
    """
    orders = []
    for stage in range(num_stages):
        num_warm_up = min(2 * (num_stages - stage) - 1, num_microbatches)
        order = [Operation("F", microbatch, stage) for microbatch in range(num_warm_up)]
        for microbatch in range(num_microbatches):
            order.append(Operation("D", microbatch, stage))
            if microbatch >= 2 * stage:
                order.append(Operation("W", microbatch - 2 * stage, stage))
            if num_warm_up + microbatch < num_microbatches:
                order.append(Operation("F", num_warm_up + microbatch, stage))
        orders.append(_finish(order, stage, num_microbatches))
    return tuple(orders)


def _delayed(stage: int, num_warm_up: int, delay: int, num_microbatches: int) -> Order:
    """Warm up, then F and D in turn, with W ``delay`` microbatches behind D."""
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
