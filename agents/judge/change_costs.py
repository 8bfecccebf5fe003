"""Kernel of times and bytes of changes of plan, on links that stand still and serve in turn.

A domain that holds a layer, for whichever copy of the model, needs not be sent it again; of several
holders a layer comes from the one from which it is there first, see `des.engine.migration`.
"""

import math

from des.base.jit import inlined, lean_kernel
from des.compiled.many.layout import Flags, Real, Small, Whole


@lean_kernel
def change_costs(
    layers: Small,
    spans: Whole,
    network_of: Whole,
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

    The rules, the order and the bits are those of `des.engine.migration`. A time is ``inf`` where
    a layer could come over a link that there is not.

    Parameters
    ----------
    layers
        Domains of the layers of the pipelines of all plans, (Q, L).
    spans
        Rows of ``layers`` of each change: from and to where of the old plan, and of the new,
        (N, 4).
    network_of
        Network of each change, (N,).
    per_parameter
        State that goes with a layer, (N,). [bytes]
    are_to_agree
        Whether the replicas take on the moments of one of them, of ``moments_bytes`` a
        parameter, (N,).
    goodput, latency_s
        Of the direct links of T networks, (T, K, K); a goodput of 0 is no link.
    free_s
        Room, (3, K, K).
    costs
        Times and bytes, (2, N).
    """
    num_layers = layers.shape[1]
    for change in range(spans.shape[0]):
        old, old_end = spans[change, 0], spans[change, 1]
        new, new_end, network = spans[change, 2], spans[change, 3], network_of[change]
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
                if source < 0 and old_end - old == 1:
                    source = layers[old, layer]
                elif source < 0:
                    source = _quickest(
                        layers,
                        old,
                        old_end,
                        layer,
                        target,
                        own_bytes,
                        goodput,
                        latency_s,
                        network,
                        overhead_s,
                        free_s,
                    )
                num_bytes += own_bytes
                if source < 0 or not goodput[network, source, target] > 0.0:
                    last_s = math.inf
                    continue
                rate = goodput[network, source, target]
                wire_s = own_bytes / rate
                free_s[0, source, target] += overhead_s + wire_s
                end_s = free_s[1, source, target] + overhead_s + wire_s
                arrival_s = end_s + latency_s[network, source, target]
                arrival_s = max(arrival_s, free_s[2, source, target])
                free_s[1, source, target], free_s[2, source, target] = end_s, arrival_s
                last_s = max(last_s, arrival_s)
        costs[0, change], costs[1, change] = last_s, num_bytes


@inlined
def _holds(layers: Small, begin: int, end: int, layer: int, domain: int) -> bool:
    """Whether a domain has a layer for one of some replicas."""
    is_held = False
    for replica in range(begin, end):
        is_held = is_held or layers[replica, layer] == domain
    return is_held


@lean_kernel
def _agreed(layers: Small, old: int, old_end: int, new: int, new_end: int, layer: int) -> int:
    """First holder of a layer that stays, or the first one."""
    for replica in range(old, old_end):
        if _holds(layers, new, new_end, layer, layers[replica, layer]):
            return int(layers[replica, layer])
    return int(layers[old, layer])


@inlined
def _quickest(
    layers: Small,
    old: int,
    old_end: int,
    layer: int,
    target: int,
    num_bytes: float,
    goodput: Real,
    latency_s: Real,
    network: int,
    overhead_s: float,
    free_s: Real,
) -> int:
    """Holder from which a layer arrives first, behind those that come that way already.

    It is -1 where one of them has no link.
    """
    best_s, source = math.inf, int(layers[old, layer])
    for replica in range(old, old_end):
        holder = layers[replica, layer]
        if not goodput[network, holder, target] > 0.0:
            return -1
        alone_s = overhead_s + num_bytes / goodput[network, holder, target]
        arrival_s = free_s[0, holder, target] + (alone_s + latency_s[network, holder, target])
        if arrival_s < best_s:
            best_s, source = arrival_s, int(holder)
    return source
