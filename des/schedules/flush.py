"""Schedules that run the backward pass in one piece: GPipe, 1F1B and 1F1B with a deeper start."""

from des.schedules.operations import Operation, Order, Orders


def gpipe(num_stages: int, num_microbatches: int) -> Orders:
    """All forwards, then all backwards (Y. Huang et al., NeurIPS'19)."""
    return tuple(
        tuple(
            Operation(kind, microbatch, stage)
            for kind in ("F", "B")
            for microbatch in range(num_microbatches)
        )
        for stage in range(num_stages)
    )


def one_f_one_b(num_stages: int, num_microbatches: int, depth_factor: float = 1.0) -> Orders:
    """Few forwards to fill the pipeline, then one forward, one backward in turn.

    Stage ``s`` of ``p`` warms up with ``min(floor(c (p - 1 - s)), m)`` forwards. A depth factor
    ``c`` of 1 is PipeDream-Flush (D. Narayanan et al., ICML'21; Megatron-LM); more hides the
    latency between the stages, at the price of that much more activation memory.

    Examples
    --------
    >>> orders = one_f_one_b(2, 3)
    >>> ["".join(f"{kind}{microbatch} " for kind, microbatch, _ in order) for order in orders]
    ['F0 F1 B0 F2 B1 B2 ', 'F0 B0 F1 B1 F2 B2 ']
    """
    return tuple(
        warm_up_then_alternate(
            stage, min(int(depth_factor * (num_stages - 1 - stage)), num_microbatches),
            num_microbatches,
        )
        for stage in range(num_stages)
    )  # fmt: skip


def warm_up_then_alternate(stage: int, num_warm_up: int, num_microbatches: int) -> Order:
    """``num_warm_up`` forwards, then forward and backward in turn, then what backwards are left."""
    order = [Operation("F", microbatch, stage) for microbatch in range(num_warm_up)]
    for microbatch in range(num_warm_up, num_microbatches):
        order.append(Operation("F", microbatch, stage))
        order.append(Operation("B", microbatch - num_warm_up, stage))
    drained = num_microbatches - num_warm_up
    order += [Operation("B", microbatch, stage) for microbatch in range(drained, num_microbatches)]
    return tuple(order)
