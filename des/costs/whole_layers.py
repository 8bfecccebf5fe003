"""Memory of layers whose sharded weights and gradients are whole for a while."""

from collections.abc import Iterable
from itertools import pairwise

from des.job.transformer import GRADIENT_BYTES, WEIGHT_BYTES
from des.job.workload import Workload
from des.plan.parallelism import Parallelism


def whole_layers_bytes(
    workload: Workload, runs: Iterable[tuple[int, int]], parallelism: Parallelism | None
) -> float:
    """Buffers of a device for what its replicas shard, all its GPUs together. [bytes]

    Every replica holds two layers in a row at a time: the one that is computed, and the next one,
    whose weights come, or the last one, whose gradients leave; see `des.costs.sharded_passes`.

    Parameters
    ----------
    runs
        First layer and number of layers of each stage of the device.
    """
    if parallelism is None or parallelism.data == 1 or not parallelism.shards("gradients"):
        return 0.0
    most = 0.0
    for first_layer, num_layers in runs:
        counts = workload.num_parameters[first_layer : first_layer + num_layers]
        most = max(most, max((a + b for a, b in pairwise(counts)), default=counts[0]))
    is_gathered = parallelism.shards("parameters")
    return parallelism.data * (GRADIENT_BYTES + is_gathered * WEIGHT_BYTES) * most
