"""Memory of layers whose sharded weights and gradients are whole for a while."""

from collections.abc import Iterable
from itertools import pairwise

from des.costs.copy_collectives import held_parameters
from des.job.transformer import WEIGHT_BYTES
from des.job.workload import Workload
from des.plan.parallelism import Parallelism


def whole_layers_bytes(
    workload: Workload, runs: Iterable[tuple[int, int]], parallelism: Parallelism | None
) -> float:
    """Buffers of a device for what its replicas shard, all its GPUs together. [bytes]

    Every copy holds two layers in a row at a time: the one that is computed, and the next one,
    whose weights come, or the last one, whose gradients leave; see `des.costs.sharded_passes`.

    Parameters
    ----------
    runs
        First layer and number of layers of each stage of the device.
    """
    if parallelism is None or parallelism.copies == 1 or not parallelism.shards("gradients"):
        return 0.0
    most = 0.0
    for first_layer, num_layers in runs:
        held = (
            held_parameters(workload, layer, 1, parallelism)
            for layer in range(first_layer, first_layer + num_layers)
        )
        apart = parallelism.expert_parts / parallelism.tensor
        counts = [one.common + one.experts / apart for one in held]
        most = max(most, max((a + b for a, b in pairwise(counts)), default=counts[0]))
    is_gathered = parallelism.shards("parameters")
    return parallelism.copies * (workload.gradient_bytes + is_gathered * WEIGHT_BYTES) * most
