"""Partitions of a server's GPUs into groups of one size."""

from itertools import combinations

from des.devices.gpus import GROUP_SIZES, GpuTopology


def best_partition(gpus: GpuTopology, size: int) -> tuple[tuple[int, ...], ...]:
    """Partition all GPUs so that the slowest ring of a group is the quickest that can be.

    That ring is `GpuTopology.best_groups`. Of several such partitions the first by the numbers of
    the GPUs, the group of the lowest one first.

    Raises
    ------
    ValueError
        If the size is none of `GROUP_SIZES`, the groups cannot hold all GPUs, or some are taken.

    Examples
    --------
    >>> pairs = GpuTopology.of_classes(
    ...     [["X", "SYS", "NV4", "SYS"], ["SYS", "X", "SYS", "NV4"],
    ...      ["NV4", "SYS", "X", "SYS"], ["SYS", "NV4", "SYS", "X"]]
    ... )
    >>> best_partition(pairs, 2)
    ((0, 2), (1, 3))
    """
    count = gpus.num_gpus
    if size not in GROUP_SIZES or count % size or len(gpus.free) < count:
        raise ValueError(
            f"partition: size must be one of {', '.join(map(str, GROUP_SIZES))} that divides "
            f"{count} GPUs, all of them free; got {size} with {len(gpus.free)} free"
        )
    row = GROUP_SIZES.index(size)
    bandwidths, latencies_s = gpus.best_groups
    slowest = (-bandwidths[row, count // size], latencies_s[row, count // size])
    found = _partition(gpus, tuple(range(count)), size, slowest)
    assert found is not None
    return found


def _partition(
    gpus: GpuTopology, left: tuple[int, ...], size: int, slowest: tuple[float, float]
) -> tuple[tuple[int, ...], ...] | None:
    """Groups of the GPUs left with no ring slower than that; None if there are none."""
    if not left:
        return ()
    wires = gpus.wires
    for chosen in combinations(left[1:], size - 1):
        group = (left[0], *chosen)
        mask = sum(1 << gpu for gpu in group)
        ring = -wires.ring_bandwidth_bytes_per_s[mask], wires.ring_latency_s[mask]
        if ring <= slowest:
            rest = _partition(gpus, tuple(gpu for gpu in left if gpu not in group), size, slowest)
            if rest is not None:
                return (group, *rest)
    return None
