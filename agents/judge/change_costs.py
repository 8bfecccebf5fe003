"""Kernel of times and bytes of changes of plan, on links that stand still and serve in turn.

A domain that holds a layer, for whichever copy of the model, needs not be sent it again; of several
holders a layer comes from the one from which it is there first, see `des.program.moves`. Where
copies share the optimiser's state, parts of it come from those that have them.
"""

import math
from typing import NamedTuple

from des.base.jit import inlined, lean_kernel
from des.compiled.many.layout import Flags, Real, Small, Whole
from des.costs.outer_state import INNER_MOMENTS_BYTES, OUTER_STATE_BYTES
from des.job.transformer import OPTIMISER_BYTES


class HeldLayers(NamedTuple):
    """Domains of the layers of P plans.

    Copies of plan ``n`` are rows of ``layers`` (Q, L) from ``first[n]`` to that of the next,
    (P + 1,); ``has_outer`` (P,) says whether there is an outer optimiser, and ``shards`` (P,) how
    many copies share the state of the inner one, 1 where each has a whole one.
    """

    layers: Small
    first: Whole
    has_outer: Flags
    shards: Whole


class MoveRates(NamedTuple):
    """Goodput [bytes/s] and latency [s] of links of T networks, (T, K, K), and overhead. [s]

    A goodput of 0 is no link; the overhead is that of a message.
    """

    goodput: Real
    latency_s: Real
    overhead_s: float


class _Change(NamedTuple):
    """A change from the copies ``old`` to those ``new``, up to their ends, on one network.

    ``base_bytes`` is the state of a parameter that goes with a layer, the optimiser's apart. The
    ``num_owners`` and ``num_shards`` share its state before and after. ``free_s`` (3, K, K) are
    what the links have to send, when they are free and when their last message arrives.
    """

    layers: Small
    num_parameters: Real
    goodput: Real
    latency_s: Real
    overhead_s: float
    free_s: Real
    old: int
    old_end: int
    new: int
    new_end: int
    num_owners: int
    num_shards: int
    base_bytes: float
    is_to_agree: bool


@lean_kernel
def change_costs(
    held: HeldLayers,
    changes: Whole,
    rates: MoveRates,
    network_of: Whole,
    num_parameters: Real,
    base_bytes: float,
    free_s: Real,
    costs: Real,
) -> None:
    """Write the time until the last layer has arrived, and the bytes sent, of N changes, (2, N).

    The rules, the order and the bits are those of `des.program.moves`. A time is ``inf`` where
    a layer could come over a link that there is not. Replicas that drop their outer optimiser take
    on the moments of one of them.

    Parameters
    ----------
    changes
        Plans before and after, (2, N).
    network_of
        Network of each change, (N,).
    base_bytes
        State of a parameter, those of both optimisers apart. [bytes]
    free_s
        Room, (3, K, K).
    """
    for number in range(network_of.size):
        old, new, network = changes[0, number], changes[1, number], network_of[number]
        is_copied = held.first[new + 1] - held.first[new] > 1
        outer_bytes = OUTER_STATE_BYTES if held.has_outer[old] and held.has_outer[new] else 0.0
        change = _Change(
            held.layers,
            num_parameters,
            rates.goodput[network],
            rates.latency_s[network],
            rates.overhead_s,
            free_s,
            held.first[old],
            held.first[old + 1],
            held.first[new],
            held.first[new + 1],
            held.shards[old],
            held.shards[new],
            base_bytes + outer_bytes,
            held.has_outer[old] and is_copied and not held.has_outer[new],
        )
        free_s[:] = 0.0
        last_s = num_bytes = 0.0
        for replica in range(change.new, change.new_end):
            for layer in range(num_parameters.size):
                own_s, own_bytes = _sent(change, replica, layer)
                last_s, num_bytes = max(last_s, own_s), num_bytes + own_bytes
        costs[0, number], costs[1, number] = last_s, num_bytes


@inlined
def _sent(change: _Change, replica: int, layer: int) -> tuple[float, float]:
    """Send weights and parts of the optimiser that a replica lacks of a layer: time and bytes."""
    layers, old, num_owners = change.layers, change.old, change.num_owners
    target = layers[replica, layer]
    is_again = _holds(layers, change.new, replica, layer, target)
    if is_again and change.num_shards == 1:  # a replica before has brought it
        return 0.0, 0.0
    is_held = _holds(layers, old, change.old_end, layer, target)
    if is_held and num_owners == 1 and not change.is_to_agree:
        return 0.0, 0.0
    source, whole_bytes = -1, OPTIMISER_BYTES
    if change.is_to_agree:
        source = _agreed(change, layer)
        whole_bytes = INNER_MOMENTS_BYTES if is_held else OPTIMISER_BYTES
    lacking_bytes = 0.0 if is_held or is_again else change.base_bytes
    last_s = num_bytes = 0.0
    first = -1 if num_owners > 1 and lacking_bytes > 0.0 else 0
    for owner in range(first, num_owners):
        part = 0.0
        if owner >= 0:
            source = layers[old + owner, layer] if num_owners > 1 else source
            part = _common_part(owner, num_owners, replica - change.new, change.num_shards)
            if part == 0.0 or source == target:
                continue
        own_bytes = (whole_bytes * part + lacking_bytes) * change.num_parameters[layer]
        lacking_bytes = 0.0
        arrival_s = _arrival_s(change, layer, source, target, own_bytes)
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
def _arrival_s(change: _Change, layer: int, source: int, target: int, num_bytes: float) -> float:
    """Send from a holder, or where that is -1 from the quickest; returns the arrival. [s]"""
    free_s = change.free_s
    if source < 0 and change.old_end - change.old == 1:
        source = change.layers[change.old, layer]
    elif source < 0:
        source = _quickest(change, layer, target, num_bytes)
    if source < 0 or not change.goodput[source, target] > 0.0:
        return math.inf
    wire_s = num_bytes / change.goodput[source, target]
    free_s[0, source, target] += change.overhead_s + wire_s
    end_s = free_s[1, source, target] + change.overhead_s + wire_s
    arrival_s: float = max(end_s + change.latency_s[source, target], free_s[2, source, target])
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
def _agreed(change: _Change, layer: int) -> int:
    """First holder of a layer that stays, or the first one."""
    layers = change.layers
    for replica in range(change.old, change.old_end):
        if _holds(layers, change.new, change.new_end, layer, layers[replica, layer]):
            return int(layers[replica, layer])
    return int(layers[change.old, layer])


@inlined
def _quickest(change: _Change, layer: int, target: int, num_bytes: float) -> int:
    """Holder from which a layer arrives first, behind those that come that way already.

    It is -1 where one of them has no link.
    """
    best_s, source = math.inf, int(change.layers[change.old, layer])
    for replica in range(change.old, change.old_end):
        holder = change.layers[replica, layer]
        if not change.goodput[holder, target] > 0.0:
            return -1
        alone_s = change.overhead_s + num_bytes / change.goodput[holder, target]
        whole_s = alone_s + change.latency_s[holder, target]
        arrival_s = change.free_s[0, holder, target] + whole_s
        if arrival_s < best_s:
            best_s, source = arrival_s, int(holder)
    return source
