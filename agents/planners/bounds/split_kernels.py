"""Compiled part of bounds on pipelines of whole layers."""

from typing import NamedTuple

import numpy as np

from agents.planners.bounds.set_kernels import Real
from des.base.jit import inlined, kernel


class SplitFigures(NamedTuple):
    """Figures of K domains and L layers.

    Attributes
    ----------
    passes_s
        Sums before each layer of both passes, the forward pass, and it with the input gradient,
        (3, K, L + 1). [s]
    updates_s
        Sums before each layer of the update, the overhead of an iteration first, (K, L + 1). [s]
    state_bytes, kept_bytes
        Sums before each layer of its state and of the activations of a microbatch, (L + 1,).
    memory_bytes
        Of each domain, (K,).
    borders_s
        Message down and up again, and its slowest wire either way, from row to column, (3, K, K).
    rest_s
        Least time of the forward pass and the input gradient from each layer on, (L + 1,). [s]
    halved
        Whether weight gradients may wait.
    """

    passes_s: Real
    updates_s: Real
    state_bytes: Real
    kept_bytes: Real
    memory_bytes: Real
    borders_s: Real
    rest_s: Real
    halved: bool


@kernel
def holds_split(
    time_s: float,
    num_microbatches: int,
    figures: SplitFigures,
    most_layers: Real,
    head_s: Real,
    trip_s: Real,
) -> bool:
    """Whether whole layers in some order of several domains may be done by a time.

    Goes through all sets of domains, the last of each, and the layers that they hold from the
    first one on, and remembers the least time until the next stage can start, ``head_s``, and that
    of a microbatch there and back, ``trip_s``, both (2^K, K, L + 1).

    Parameters
    ----------
    most_layers
        Layers that each domain can do by a second at most, (K,).
    """
    borders_s = figures.borders_s
    size, num_layers = figures.memory_bytes.size, figures.kept_bytes.size - 1
    is_used = np.zeros(1 << size, np.bool_)
    is_used[0] = True
    for before in range(1 << size):
        if not is_used[before]:
            continue
        for last in range(size if before else 1):
            if before and not before >> last & 1:
                continue
            for start in range(num_layers if before else 1):
                head = head_s[before, last, start] if before else 0.0
                trip = trip_s[before, last, start] if before else 0.0
                if head == np.inf:
                    continue
                most = 0
                for domain in range(size):
                    if not before >> domain & 1:
                        own = (time_s - head) * most_layers[domain] + 1e-6
                        most += int(max(min(own, num_layers), 0.0))
                if start + most < num_layers:
                    continue
                for domain in range(size):
                    if before >> domain & 1:
                        continue
                    down = borders_s[0, last, domain] if before else 0.0
                    both = down + borders_s[1, last, domain] if before else 0.0
                    wire = borders_s[2, last, domain] if before else 0.0
                    least = max(trip + both, figures.rest_s[0] + both)
                    if not (num_microbatches - 1) * wire + least <= time_s:
                        continue
                    after = before | 1 << domain
                    if not is_used[after]:
                        is_used[after] = True
                        head_s[after] = np.inf
                        trip_s[after] = np.inf
                    found = _end_stages(
                        time_s,
                        num_microbatches,
                        figures,
                        domain,
                        (head + down, trip + both),
                        start,
                        head_s[after, domain],
                        trip_s[after, domain],
                    )
                    if found and before:
                        return True
    return False


@inlined
def _end_stages(
    time_s: float,
    num_microbatches: int,
    figures: SplitFigures,
    domain: int,
    begin_s: tuple[float, float],
    start: int,
    head_s: Real,
    trip_s: Real,
) -> bool:
    """End a stage behind each layer that it may have, and say whether it may have all the rest."""
    state_bytes, kept_bytes, halved = figures.state_bytes, figures.kept_bytes, figures.halved
    passes_s, updates_s = figures.passes_s[:, domain], figures.updates_s[domain]
    memory_bytes, rest_s = figures.memory_bytes[domain], figures.rest_s
    num_layers = kept_bytes.size - 1
    head, trip = begin_s
    for end in range(start + 1, num_layers + 1):
        kept = kept_bytes[end] - kept_bytes[start]
        room = memory_bytes - (state_bytes[end] - state_bytes[start])
        own = passes_s[0, end] - passes_s[0, start]
        early = passes_s[2, end] - passes_s[2, start]
        late = updates_s[end] - updates_s[start] + updates_s[0]
        ahead = head if halved else trip
        if room < kept or ahead + num_microbatches * own + late > time_s:
            return False
        if halved and trip + num_microbatches * early + late > time_s:
            return False
        held = np.floor(room / kept * (1.0 + 1e-9)) if kept > 0.0 else np.inf
        rounds = 1.0 + np.floor((num_microbatches - 1) / held)
        if trip + rounds * (early + rest_s[end]) + late > time_s:
            continue
        if end == num_layers:
            return True
        turn = trip + (early if halved else own)
        head_s[end] = min(head_s[end], head + passes_s[1, end] - passes_s[1, start])
        trip_s[end] = min(trip_s[end], turn)
    return False
