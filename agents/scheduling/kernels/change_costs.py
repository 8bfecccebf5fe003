"""Times and bytes of changes of plan, each on links of its own that stand still."""

import math

from des.base.jit import kernel
from des.compiled.many.layout import Flags, Real, Small, Whole


@kernel
def change_costs(
    layers: Small,
    spans: Whole,
    per_parameter: Real,
    are_to_agree: Flags,
    moments_bytes: float,
    num_parameters: Real,
    goodput: Real,
    latency_s: Real,
    overhead_s: float,
    free_s: Real,
    costs: Real,
) -> None:
    """Write the time until the last layer has arrived, and the bytes sent, of each of N changes.

    The rules and the order are those of `des.engine.migration`.

    Parameters
    ----------
    layers
        Domains of the layers of the pipelines of all plans, (Q, L).
    spans
        Rows of ``layers`` of each change: from and to where of the old plan, and of the new,
        (N, 4).
    per_parameter
        State that goes with a layer, (N,). [bytes]
    are_to_agree
        Whether the replicas take on the moments of one of them, of ``moments_bytes`` a
        parameter, (N,).
    goodput, latency_s
        Of the direct links of each change, (N, K, K).
    free_s
        Room, (3, K, K).
    costs
        Times and bytes, (2, N).
    """
    num_layers = layers.shape[1]
    for change in range(spans.shape[0]):
        old, old_end, new, new_end = spans[change]
        free_s[:] = 0.0
        last_s = num_bytes = 0.0
        for replica in range(new, new_end):
            for layer in range(num_layers):
                target = layers[replica, layer]
                if _holds(layers, new, replica, layer, target):  # a replica before has brought it
                    continue
                is_held = _holds(layers, old, old_end, layer, target)
                source = -1
                if are_to_agree[change]:
                    source = _agreed(layers, old, old_end, new, new_end, layer)
                    if source == target:
                        continue
                elif is_held:
                    continue
                own_bytes = moments_bytes if is_held else per_parameter[change]
                own_bytes *= num_parameters[layer]
                if source < 0:
                    source = _quickest(
                        layers,
                        old,
                        old_end,
                        layer,
                        target,
                        own_bytes,
                        goodput[change],
                        latency_s[change],
                        overhead_s,
                        free_s[0],
                    )
                num_bytes += own_bytes
                rate = goodput[change, source, target]
                free_s[0, source, target] += overhead_s + own_bytes / rate
                end_s = free_s[1, source, target] + overhead_s + own_bytes / rate
                arrival_s = end_s + latency_s[change, source, target]
                arrival_s = max(arrival_s, free_s[2, source, target])
                free_s[1, source, target], free_s[2, source, target] = end_s, arrival_s
                last_s = max(last_s, arrival_s)
        costs[0, change], costs[1, change] = last_s, num_bytes


@kernel
def _holds(layers: Small, begin: int, end: int, layer: int, domain: int) -> bool:
    """Whether a domain has a layer for one of some replicas."""
    is_held = False
    for replica in range(begin, end):
        is_held = is_held or layers[replica, layer] == domain
    return is_held


@kernel
def _agreed(layers: Small, old: int, old_end: int, new: int, new_end: int, layer: int) -> int:
    """First holder of a layer that stays, or the first one."""
    for replica in range(old, old_end):
        if _holds(layers, new, new_end, layer, layers[replica, layer]):
            return int(layers[replica, layer])
    return int(layers[old, layer])


@kernel
def _quickest(
    layers: Small,
    old: int,
    old_end: int,
    layer: int,
    target: int,
    num_bytes: float,
    goodput: Real,
    latency_s: Real,
    overhead_s: float,
    free_s: Real,
) -> int:
    """Holder from which a layer arrives first, behind those that come that way already."""
    best_s, source = math.inf, int(layers[old, layer])
    for replica in range(old, old_end):
        holder = layers[replica, layer]
        alone_s = overhead_s + num_bytes / goodput[holder, target]
        arrival_s = free_s[holder, target] + (alone_s + latency_s[holder, target])
        if arrival_s < best_s:
            best_s, source = arrival_s, int(holder)
    return source
