"""Kernel of times and bytes of changes of plan, on links that stand still and serve in turn.

A domain that holds a layer, for whichever copy of the model, needs not be sent it again; of several
holders a layer comes from the one from which it is there first, see `des.program.moves`. Where
copies share the optimiser's state, parts of it come from those that have them.
"""

import math

from des.base.jit import inlined, lean_kernel
from des.compiled.many.layout import Flags, Real, Small, Whole
from des.costs.outer_state import INNER_MOMENTS_BYTES
from des.job.transformer import OPTIMISER_BYTES


@lean_kernel
def change_costs(
    layers: Small,
    spans: Whole,
    shards: Whole,
    network_of: Whole,
    base_bytes: Real,
    are_to_agree: Flags,
    num_parameters: Real,
    goodput: Real,
    latency_s: Real,
    overhead_s: float,
    free_s: Real,
    costs: Real,
) -> None:
    """Write the time until the last layer has arrived, and the bytes sent, of each of N changes.

    The rules, the order and the bits are those of `des.program.moves`. A time is ``inf`` where
    a layer could come over a link that there is not.

    Parameters
    ----------
    layers
        Domains of the layers of the pipelines of all plans, (Q, L).
    spans
        Rows of ``layers`` of each change: from and to where of the old plan, and of the new,
        (N, 4).
    shards
        Replicas that share the optimiser's state in the old plan, and in the new, (N, 2).
    network_of
        Network of each change, (N,).
    base_bytes
        State of a parameter that goes with a layer, the optimiser's apart, (N,). [bytes]
    are_to_agree
        Whether the replicas take on the moments of one of them, (N,).
    goodput, latency_s
        Of the direct links of T networks, (T, K, K); a goodput of 0 is no link.
    free_s
        Room, (3, K, K).
    costs
        Times and bytes, (2, N).
    """
    num_layers = layers.shape[1]
    for change in range(spans.shape[0]):
        new, new_end = spans[change, 2], spans[change, 3]
        free_s[:] = 0.0
        last_s = num_bytes = 0.0
        for replica in range(new, new_end):
            for layer in range(num_layers):
                own_s, own_bytes = _sent(
                    layers,
                    spans,
                    shards,
                    network_of,
                    base_bytes,
                    are_to_agree,
                    num_parameters,
                    goodput,
                    latency_s,
                    overhead_s,
                    free_s,
                    change,
                    replica,
                    layer,
                )
                last_s, num_bytes = max(last_s, own_s), num_bytes + own_bytes
        costs[0, change], costs[1, change] = last_s, num_bytes


@inlined
def _sent(
    layers: Small,
    spans: Whole,
    shards: Whole,
    network_of: Whole,
    base_bytes: Real,
    are_to_agree: Flags,
    num_parameters: Real,
    goodput: Real,
    latency_s: Real,
    overhead_s: float,
    free_s: Real,
    change: int,
    replica: int,
    layer: int,
) -> tuple[float, float]:
    """Send weights and parts of the optimiser that a replica lacks of a layer: time and bytes."""
    old, old_end = spans[change, 0], spans[change, 1]
    new, new_end = spans[change, 2], spans[change, 3]
    num_owners, num_shards = shards[change, 0], shards[change, 1]
    target = layers[replica, layer]
    is_again = _holds(layers, new, replica, layer, target)
    if is_again and num_shards == 1:  # a replica before has brought it
        return 0.0, 0.0
    is_held = _holds(layers, old, old_end, layer, target)
    if is_held and num_owners == 1 and not are_to_agree[change]:
        return 0.0, 0.0
    source, whole_bytes = -1, OPTIMISER_BYTES
    if are_to_agree[change]:
        source = _agreed(layers, old, old_end, new, new_end, layer)
        whole_bytes = INNER_MOMENTS_BYTES if is_held else OPTIMISER_BYTES
    lacking_bytes = 0.0 if is_held or is_again else base_bytes[change]
    last_s = num_bytes = 0.0
    first = -1 if num_owners > 1 and lacking_bytes > 0.0 else 0
    for owner in range(first, num_owners):
        part = 0.0
        if owner >= 0:
            source = layers[old + owner, layer] if num_owners > 1 else source
            part = _common_part(owner, num_owners, replica - new, num_shards)
            if part == 0.0 or source == target:
                continue
        own_bytes = (whole_bytes * part + lacking_bytes) * num_parameters[layer]
        lacking_bytes = 0.0
        arrival_s = _arrival_s(
            layers,
            old,
            old_end,
            layer,
            source,
            target,
            own_bytes,
            goodput,
            latency_s,
            network_of[change],
            overhead_s,
            free_s,
        )
        last_s, num_bytes = max(last_s, arrival_s), num_bytes + own_bytes
    return last_s, num_bytes


@inlined
def _common_part(owner: int, num_owners: int, replica: int, num_shards: int) -> float:
    """Part of the optimiser's state that an old replica has and a new one is to have."""
    count, begin, end = num_owners * num_shards, 0, num_owners * num_shards
    if num_shards > 1:
        begin, end = replica * num_owners, (replica + 1) * num_owners
    common = min(end, (owner + 1) * num_shards) - max(begin, owner * num_shards)
    return max(0, common) / count


@inlined
def _arrival_s(
    layers: Small,
    old: int,
    old_end: int,
    layer: int,
    source: int,
    target: int,
    num_bytes: float,
    goodput: Real,
    latency_s: Real,
    network: int,
    overhead_s: float,
    free_s: Real,
) -> float:
    """Send from a holder, or where that is -1 from the quickest; returns the arrival. [s]"""
    if source < 0 and old_end - old == 1:
        source = layers[old, layer]
    elif source < 0:
        source = _quickest(
            layers,
            old,
            old_end,
            layer,
            target,
            num_bytes,
            goodput,
            latency_s,
            network,
            overhead_s,
            free_s,
        )
    if source < 0 or not goodput[network, source, target] > 0.0:
        return math.inf
    wire_s = num_bytes / goodput[network, source, target]
    free_s[0, source, target] += overhead_s + wire_s
    end_s = free_s[1, source, target] + overhead_s + wire_s
    arrival_s: float = max(end_s + latency_s[network, source, target], free_s[2, source, target])
    free_s[1, source, target], free_s[2, source, target] = end_s, arrival_s
    return arrival_s


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
