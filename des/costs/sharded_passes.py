"""Gathering of sharded weights and scattering of gradients, layer by layer, within the passes.

The rule of ZeRO-3 and of fully sharded data parallelism (FSDP): every pass that needs the weights
of a layer gathers them, forward and backward alike; while a layer is computed, the weights of the
next one are on their way (one layer ahead) and so are the gradients of the one before. What takes
longer than the computation is waited for; so are the first layer's weights and the last one's
gradients. Sharded gradients, with ZeRO-2 as well, are scattered after every microbatch, or a GPU
would have to hold all of them. Both directions of a backward pass share the same wires.

References
----------
.. [1] Y. Zhao et al., "PyTorch FSDP: Experiences on scaling fully sharded data parallel",
   Proc. VLDB 16(12), 2023, sections 3.2 and 3.3 (prefetch of the next layer).
.. [2] S. Rajbhandari et al., "ZeRO: Memory optimizations toward training trillion parameter
   models", SC'20, section 7 (volumes of stages 2 and 3).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from des.costs.copy_collectives import Collective, held_parameters, over_copies_s
from des.costs.message_times import correct_inside
from des.costs.node_collectives import group_all_gather_s, group_reduce_scatter_s
from des.job.transformer import WEIGHT_BYTES
from des.job.workload import Workload
from des.plan.corrections import Corrections
from des.plan.parallelism import Parallelism
from des.plan.placement import Stage
from des.schedules import Pass
from des.world.domain import Domain


def waiting_s(
    compute_s: Sequence[float], before_s: Sequence[float], after_s: Sequence[float]
) -> float:
    """Time of a pass beyond its computation, with messages one layer ahead and one behind. [s]

    Parameters
    ----------
    compute_s
        Of each layer, in the order of the pass.
    before_s, after_s
        Messages that each layer needs before it, and that it makes.

    Examples
    --------
    Three layers of 4 s whose weights come in 3 s: only the first is waited for. Gradients of 2 s
    each add up with them on the wires to 5 s, and the last ones are waited for.

    >>> waiting_s([4.0] * 3, [3.0] * 3, [0.0] * 3), waiting_s([4.0] * 3, [3.0] * 3, [2.0] * 3)
    (3.0, 6.0)
    """
    waits_s = before_s[0] + after_s[-1]
    coming, made = (*before_s[1:], 0.0), (0.0, *after_s[:-1])
    for own_s, next_s, last_s in zip(compute_s, coming, made, strict=True):
        waits_s += max(0.0, next_s + last_s - own_s)
    return waits_s


def sharded_waits_s(
    workload: Workload,
    domain: Domain,
    parallelism: Parallelism,
    stage: Stage,
    *,
    corrections: Corrections,
    work_s: Mapping[Pass, Sequence[float]],
) -> dict[Pass, float]:
    """Time that each pass of a stage waits for sharded weights and gradients. [s]

    Parameters
    ----------
    work_s
        Time of each pass over all layers of the model before each one, which hides messages.
    """
    where = (correct_inside(domain, corrections), parallelism)
    layers = range(stage.first_layer, stage.first_layer + stage.num_layers)
    parts = [held_parameters(workload, layer, 1, parallelism) for layer in layers]

    def each_s(collective_s: Collective, parameter_bytes: float) -> list[float]:
        return [
            over_copies_s(collective_s, part, parameter_bytes, *where, device=stage.device)
            for part in parts
        ]

    none_s = [0.0] * len(parts)
    scatters_s = each_s(group_reduce_scatter_s, workload.gradient_bytes)
    gathers_s = none_s
    if parallelism.shards("parameters"):
        gathers_s = each_s(group_all_gather_s, WEIGHT_BYTES)
    last = stage.first_layer + stage.num_layers + 1
    compute_s = {
        kind: [after - before for before, after in pairwise(sums[stage.first_layer : last])]
        for kind, sums in work_s.items()
    }
    back = {kind: each[::-1] for kind, each in compute_s.items()}
    gathers_back_s, scatters_back_s = gathers_s[::-1], scatters_s[::-1]
    return {
        "F": waiting_s(compute_s["F"], gathers_s, none_s),
        "B": waiting_s(back["B"], gathers_back_s, scatters_back_s),
        "D": waiting_s(back["D"], gathers_back_s, none_s),
        "W": waiting_s(back["W"], none_s, scatters_back_s),
    }
