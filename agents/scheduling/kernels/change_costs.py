"""Times and bytes of changes of plan, each on links of its own that stand still."""

import math

from agents.judge.copy_moves import common_part
from des.base.jit import kernel
from des.compiled.many.layout import Flags, Real, Small, Whole
from des.costs.outer_state import INNER_MOMENTS_BYTES
from des.job.transformer import OPTIMISER_BYTES


@kernel
def change_costs(
    layers: Small,
    spans: Whole,
    shards: Whole,
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

    The rules and the order are those of `des.engine.migration`.

    Parameters
    ----------
    layers
        Domains of the layers of the pipelines of all plans, (Q, L).
    spans
        Rows of ``layers`` of each change: from and to where of the old plan, and of the new,
        (N, 4).
    shards
        Replicas that share the optimiser's state of the old plan, and of the new, (N, 2).
    base_bytes
        State of a parameter that goes with a layer, the inner optimiser's apart, (N,). [bytes]
    are_to_agree
        Whether the replicas take on the moments of one of them, (N,).
    goodput, latency_s
        Of the direct links of each change, (N, K, K).
    free_s
        Room, (3, K, K).
    costs
        Times and bytes, (2, N).
    """
    for change in range(spans.shape[0]):
        free_s[:] = 0.0
        costs[0, change], costs[1, change] = _change(
            layers,
            spans[change],
            shards[change],
            base_bytes[change],
            are_to_agree[change],
            num_parameters,
            goodput[change],
            latency_s[change],
            overhead_s,
            free_s,
        )


@kernel
def _change(
    layers: Small,
    span: Whole,
    shards: Whole,
    base_bytes: float,
    is_to_agree: bool,
    num_parameters: Real,
    goodput: Real,
    latency_s: Real,
    overhead_s: float,
    free_s: Real,
) -> tuple[float, float]:
    """Time until the last layer has arrived [s], and bytes sent."""
    old, old_end, new, new_end = span
    last_s = num_bytes = 0.0
    for replica in range(new, new_end):
        for layer in range(layers.shape[1]):
            target, size = layers[replica, layer], num_parameters[layer]
            is_again, source = _holds(layers, new, replica, layer, target), -1
            if is_again and shards[1] == 1:  # a replica before has brought it
                continue
            is_held = _holds(layers, old, old_end, layer, target)
            whole_bytes = INNER_MOMENTS_BYTES if is_held and is_to_agree else OPTIMISER_BYTES
            lacking_bytes = 0.0 if is_held or is_again else base_bytes
            if is_to_agree:
                source = _agreed(layers, old, old_end, new, new_end, layer)
            first = 0 if shards[0] == 1 or lacking_bytes == 0.0 else -1
            for owner in range(first, shards[0]):
                part = 0.0
                if owner >= 0:
                    source = layers[old + owner, layer] if shards[0] > 1 else source
                    part = common_part(owner, shards[0], replica - new, shards[1])
                    if part == 0.0 or source == target or (source < 0 and is_held):
                        continue
                sent_bytes = (whole_bytes * part + lacking_bytes) * size
                lacking_bytes = 0.0
                arrival_s = _arrival_s(
                    layers, old, old_end, layer, source, target, sent_bytes,
                    goodput, latency_s, overhead_s, free_s,
                )  # fmt: skip
                last_s, num_bytes = max(last_s, arrival_s), num_bytes + sent_bytes
    return last_s, num_bytes


@kernel
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
    overhead_s: float,
    free_s: Real,
) -> float:
    """Send a layer's state, from the quickest holder where the source is negative; returns when."""
    if source < 0:
        source = _quickest(
            layers, old, old_end, layer, target, num_bytes,
            goodput, latency_s, overhead_s, free_s[0],
        )  # fmt: skip
    sent_s = num_bytes / goodput[source, target]
    free_s[0, source, target] += overhead_s + sent_s
    end_s = free_s[1, source, target] + overhead_s + sent_s
    arrival_s: float = max(end_s + latency_s[source, target], free_s[2, source, target])
    free_s[1, source, target], free_s[2, source, target] = end_s, arrival_s
    return arrival_s


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
