"""Messages of changes of plan, and their times on links that stand still and serve in turn.

Plans have one pipeline. One message per layer goes straight from the domain that has it to the one
that is to have it, as in `des.program.moves`.
"""

from typing import NamedTuple

import numpy as np

from des.base.jit import kernel
from des.compiled.many.layout import Real, Small, Whole


class Ways(NamedTuple):
    """Messages of each change of S plans into each of C, by link.

    That of plan ``old`` into ``new`` are the entries from ``first[C * old + new]`` to the next: the
    link from domain ``s`` to ``t`` of K is way ``K * s + t``, with its bytes and its messages.
    """

    first: Whole
    way: Small
    num_bytes: Real
    num_messages: Real


@kernel
def count_ways(sources: Small, targets: Small, num_domains: int, first: Whole) -> None:
    """Write where the entries of each change begin, and after the last one how many there are.

    Plans are the domains of their layers, (S, L) and (C, L); ``first`` is (S * C + 1,).
    """
    num_plans, num_layers = targets.shape
    seen = np.full(num_domains * num_domains, -1, dtype=np.int64)
    first[0] = 0
    for old in range(len(sources)):
        for new in range(num_plans):
            change, count = old * num_plans + new, 0
            for layer in range(num_layers):
                source, target = sources[old, layer], targets[new, layer]
                way = source * num_domains + target
                if source != target and seen[way] != change:
                    seen[way] = change
                    count += 1
            first[change + 1] = first[change] + count


@kernel
def fill_ways(
    sources: Small,
    targets: Small,
    num_domains: int,
    layer_bytes: Real,
    ways: Ways,
    moved_bytes: Real,
) -> None:
    """Write the entries of all changes, and what each moves, (S, C); bytes are added by layer."""
    first, way_of, num_bytes, num_messages = ways
    num_plans, num_layers = targets.shape
    entry_of = np.full(num_domains * num_domains, -1, dtype=np.int64)
    for old in range(len(sources)):
        for new in range(num_plans):
            change = old * num_plans + new
            end, moved = first[change], 0.0
            for layer in range(num_layers):
                source, target = sources[old, layer], targets[new, layer]
                if source == target:
                    continue
                way = source * num_domains + target
                entry = entry_of[way]
                if entry < first[change]:  # of another change
                    entry = entry_of[way] = end
                    way_of[entry], num_bytes[entry], num_messages[entry] = way, 0.0, 0.0
                    end += 1
                num_bytes[entry] += layer_bytes[layer]
                num_messages[entry] += 1.0
                moved += layer_bytes[layer]
            moved_bytes[old, new] = moved


@kernel
def change_times(
    ways: Ways, goodput: Real, latency_s: Real, overhead_s: float, restart_s: float, move_s: Real
) -> None:
    """Write how long each change takes, (S, C); ``nan`` where it needs a link that there is not.

    Layers of one way leave one after the other, ways side by side; the restart follows when all
    have arrived. ``goodput`` and ``latency_s`` (K, K) are those of links, a goodput of 0 is none.
    Where nothing is sent only the restart is left: who calls knows which plans are equal.
    """
    first, way_of, num_bytes, num_messages = ways
    num_sources, num_plans = move_s.shape
    num_domains = goodput.shape[0]
    for old in range(num_sources):
        for new in range(num_plans):
            change, last_s = old * num_plans + new, 0.0
            for entry in range(first[change], first[change + 1]):
                source, target = way_of[entry] // num_domains, way_of[entry] % num_domains
                rate = goodput[source, target]
                if not rate > 0.0:
                    last_s = np.nan
                    break
                sent_s = num_messages[entry] * overhead_s + num_bytes[entry] / rate
                last_s = max(last_s, sent_s + latency_s[source, target])
            move_s[old, new] = last_s + restart_s
