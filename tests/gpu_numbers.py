"""GPUs under other numbers, which no decision may depend on."""

from collections.abc import Sequence

from des.devices.gpus import GpuTopology


def renumbered(gpus: GpuTopology, order: Sequence[int]) -> GpuTopology:
    """Return the same GPUs with other numbers: the new GPU ``i`` was ``order[i]``.

    Raises
    ------
    ValueError
        If ``order`` does not name every GPU once.
    """
    if sorted(order) != list(range(gpus.num_gpus)):
        raise ValueError(
            f"GPU topology: order must name GPUs 0 to {gpus.num_gpus - 1} once, got {order!r}"
        )
    return GpuTopology(
        bandwidth_bytes_per_s=tuple(
            tuple(gpus.bandwidth_bytes_per_s[one][other] for other in order) for one in order
        ),
        latency_s=tuple(tuple(gpus.latency_s[one][other] for other in order) for one in order),
        numa_of_gpu=tuple(gpus.numa_of_gpu[one] for one in order),
        free=tuple(new for new, old in enumerate(order) if old in gpus.free),
    )
