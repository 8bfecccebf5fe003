"""Several stages (chunks) on a device: which device has which, and interleaved 1F1B."""

from des.base.checks import MOST_ITEMS, require_count
from des.schedules.operations import Operation, Order, Orders


def loop_devices(num_devices: int, num_chunks: int) -> tuple[int, ...]:
    """Device of each stage where the model goes round the devices ``num_chunks`` times.

    Examples
    --------
    >>> loop_devices(3, 2)
    (0, 1, 2, 0, 1, 2)
    """
    return tuple(range(num_devices)) * num_chunks


def wave_devices(num_devices: int, num_chunks: int) -> tuple[int, ...]:
    """Device of each stage where the model goes down the devices and back up in turn.

    Two chunks make the V of ZB-V [1]_: device ``d`` has stages ``d`` and ``2 p - 1 - d``, so the
    last stage is next to the first. More make the waves of Hanayo [2]_.

    References
    ----------
    .. [1] P. Qi et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024.
    .. [2] Z. Liu et al., "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large
       Model Training Efficiency", SC 2023.

    Examples
    --------
    >>> wave_devices(3, 2)
    (0, 1, 2, 2, 1, 0)
    """
    down = tuple(range(num_devices))
    return tuple(
        device for chunk in range(num_chunks) for device in (down[::-1] if chunk % 2 else down)
    )


def interleaved_1f1b(
    num_devices: int, num_chunks: int, num_microbatches: int, group_size: int | None = None
) -> Orders:
    """One order a device over its chunks, stage ``k`` on device ``k % p``, as in Megatron-LM [1]_.

    Microbatches pass in groups of ``g``, by default ``p``: a device does one chunk for a whole
    group, then the next chunk. It warms up with ``2 (p - 1 - rank) + (chunks - 1) g`` forwards (at
    most all there are), then does one forward, one backward in turn. Larger groups hide longer
    links, for the memory of the deeper warm-up. Bubble of equal stages without latency, for
    forward and backward times ``F`` and ``B`` of a whole device: ``(p - 1) (F + B) / chunks``.

    A last group of at least ``p`` may be smaller than the others. Megatron-LM refuses numbers of
    microbatches that leave a group of less than ``p``. Here they get the order of the next multiple
    of ``g`` without the microbatches that are not there. It cannot deadlock, as nothing waits for
    those.

    Raises
    ------
    ValueError
        If a count is not a whole number of at least 1, or a group is smaller than ``num_devices``.

    References
    ----------
    .. [1] D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", SC 2021.

    Examples
    --------
    >>> for order in interleaved_1f1b(2, 2, 2):
    ...     print(*(f"{kind}{microbatch}@{stage}" for kind, microbatch, stage in order))
    F0@0 F1@0 F0@2 F1@2 B0@2 B1@2 B0@0 B1@0
    F0@1 F1@1 F0@3 B0@3 F1@3 B1@3 B0@1 B1@1
    """
    require_count("interleaved 1f1b", "num_devices", num_devices, MOST_ITEMS)
    require_count("interleaved 1f1b", "num_chunks", num_chunks, MOST_ITEMS)
    require_count("interleaved 1f1b", "num_microbatches", num_microbatches, MOST_ITEMS)
    size = num_devices if group_size is None else group_size
    require_count("interleaved 1f1b", "group_size", size, MOST_ITEMS)
    if size < num_devices:
        raise ValueError(
            f"interleaved 1f1b: group_size must be at least the {num_devices} devices, got {size}"
        )
    rest = num_microbatches % size
    total = num_microbatches if rest >= num_devices else -(-num_microbatches // size) * size
    return tuple(
        tuple(
            operation
            for operation in _order(rank, num_devices, num_chunks, total, size)
            if operation.microbatch < num_microbatches
        )
        for rank in range(num_devices)
    )


def _order(
    rank: int, num_devices: int, num_chunks: int, num_microbatches: int, group_size: int
) -> Order:
    """Order of a device whose last group of microbatches is whole or has one for each device."""
    stages = [chunk * num_devices + rank for chunk in range(num_chunks)]
    forwards: list[Operation] = []
    backwards: list[Operation] = []
    for first in range(0, num_microbatches, group_size):
        group = range(first, min(first + group_size, num_microbatches))
        forwards += [Operation("F", microbatch, stage) for stage in stages for microbatch in group]
        backwards += [
            Operation("B", microbatch, stage) for stage in stages[::-1] for microbatch in group
        ]
    num_warm_up = 2 * (num_devices - 1 - rank) + (num_chunks - 1) * group_size
    order = forwards[:num_warm_up]
    for at, backward in enumerate(backwards):
        order += [*forwards[num_warm_up + at : num_warm_up + at + 1], backward]
    return tuple(order)
