"""Lower bounds of the time of a pipeline, by which an enumeration leaves plans out.

Each is proven from the order of a worker and from what a message takes at least; sums of gradients,
updates and messages inside sites only add to it. Below, F and B are the passes of a microbatch on a
device, and a way is the transfer and latency of a message between two sites.

*Work.* Before the first pass of a device the microbatch has passed all devices and ways upstream of
it; after its last pass, a B, the gradient passes them again. In between lie all of its own passes.
A send that blocks holds the device up for the way, after every pass but the last.

*Round trips* (1F1B). The d-th last device does d forwards before its first B, and from then on
F(i + d) only after B(i), which comes a round trip after F(i): through all devices and ways
downstream, and back.

*Rounds* (interleaved, V chunks, groups of g). The last device has done (V - 1) g forwards when it
does its first B, and from then on a B comes before each F. The first microbatch of a group takes a
round over all devices and ways from one chunk to the next; g passes lie in between as well. Then
come g forwards of the last chunk, before the next group. After the last F as many B are left as
there were forwards before the first one; those of its microbatch take a round a chunk, too. Later
chunks have no more layers than earlier ones, so no round has less than the last chunk of all sites.

*Links.* A link carries one message at a time: V of each microbatch and border, V - 1 on the way
from the last site to the first. Between two sites both share the links.
"""

from typing import NamedTuple, Self

import numpy as np

from agents.search.kernels.layouts import group_size
from agents.search.kernels.records import SiteFigures, TimingRules
from des.base.arithmetic import even_share
from des.base.jit import lean_kernel


class Least(NamedTuple):
    """Least figures of layers of S sites: of one, (S, 2) F and B, and of runs, (S, L + 1) bytes."""

    passes_s: np.ndarray
    state_bytes: np.ndarray
    kept_bytes: np.ndarray

    @classmethod
    def of(cls, figures: SiteFigures) -> Self:
        """Look all runs of layers through."""
        return cls(
            np.diff(figures.passes_s[:, :2], axis=-1).min(axis=-1),
            _least_runs(figures.state_bytes),
            _least_runs(figures.kept_bytes),
        )


def _least_runs(sums: np.ndarray) -> np.ndarray:
    """Least of what runs of each length have, by sums before each layer."""
    found = np.zeros_like(sums)
    for count in range(1, sums.shape[1]):
        found[:, count] = (sums[:, count:] - sums[:, :-count]).min(axis=-1)
    return found


@lean_kernel
def way_s(figures: SiteFigures, source: int, target: int) -> float:
    """Time of a message from a site to another one. [s]"""
    return float(figures.outer_s[source, target, 0] + figures.outer_s[source, target, 1])


@lean_kernel
def _both_s(figures: SiteFigures, site: int, layer: int, end: int) -> float:
    """Time of F and B of layers of a site. [s]"""
    forward, backward = figures.passes_s[site, 0], figures.passes_s[site, 1]
    return float(forward[end] - forward[layer] + backward[end] - backward[layer])


@lean_kernel
def plain_bound_s(
    figures: SiteFigures, rules: TimingRules, chain: np.ndarray, split: np.ndarray
) -> float:
    """Least time of 1F1B by the work of devices at both ends of a site, and by round trips. [s]"""
    num_microbatches, longest_s, before_s = rules.num_microbatches, 0.0, 0.0
    layer = devices_after = 0
    whole_s = _path_s(figures, chain, split)
    for at in range(len(chain)):
        devices_after += split[at, 0]
    for at in range(len(chain)):
        site, devices, layers = chain[at], split[at, 0], split[at, 1]
        down_s = up_s = 0.0
        if at > 0:
            up_s = way_s(figures, site, chain[at - 1])
        if at < len(chain) - 1:
            down_s = way_s(figures, site, chain[at + 1])
        hold_up_s = up_s if rules.is_blocking else 0.0
        hold_down_s = down_s if rules.is_blocking else 0.0
        first = -(-layers // devices)
        own_s = _both_s(figures, site, layer, layer + first) + hold_up_s
        if devices == 1:
            own_s += hold_down_s
        longest_s = max(longest_s, before_s - hold_up_s + num_microbatches * own_s)
        last = layers // devices
        start_s = before_s + _both_s(figures, site, layer, layer + layers - last)
        own_s = _both_s(figures, site, layer + layers - last, layer + layers) + hold_down_s
        if devices == 1:
            own_s += hold_up_s
            start_s -= hold_up_s
        longest_s = max(longest_s, start_s + num_microbatches * own_s)
        devices_after -= devices
        trip_s = whole_s - before_s - _both_s(figures, site, layer, layer + layers - last)
        turns = (num_microbatches - 1) // (devices_after + 1)
        if devices == 1:
            trip_s += hold_up_s
        longest_s = max(longest_s, whole_s + turns * trip_s)
        before_s += _both_s(figures, site, layer, layer + layers)
        if at < len(chain) - 1:
            before_s += down_s + way_s(figures, chain[at + 1], site)
        layer += layers
    return longest_s


@lean_kernel
def _path_s(figures: SiteFigures, chain: np.ndarray, split: np.ndarray) -> float:
    """Time of one microbatch through all sites and back. [s]"""
    total_s, layer = 0.0, 0
    for at in range(len(chain)):
        total_s += _both_s(figures, chain[at], layer, layer + split[at, 1])
        layer += split[at, 1]
        if at < len(chain) - 1:
            total_s += way_s(figures, chain[at], chain[at + 1])
            total_s += way_s(figures, chain[at + 1], chain[at])
    return total_s


@lean_kernel
def interleaved_bound_s(
    figures: SiteFigures, least: Least, rules: TimingRules, chain: np.ndarray, split: np.ndarray
) -> float:
    """Least time of the interleaved schedule by work, links and rounds. [s]"""
    chunks, num_microbatches, last_at = rules.num_chunks, rules.num_microbatches, len(chain) - 1
    longest_s = before_s = round_s = back_s = 0.0
    num_workers = 0
    for at in range(len(chain)):
        site, devices, layers = chain[at], split[at, 0], split[at, 1]
        num_workers += devices
        each_s = least.passes_s[site, 0] + least.passes_s[site, 1]
        longest_s = max(longest_s, before_s + num_microbatches * -(-layers // devices) * each_s)
        round_s += layers // chunks * least.passes_s[site, 0]
        back_s += layers // chunks * least.passes_s[site, 1]
        if last_at > 0:
            after = chain[at + 1] if at < last_at else chain[0]
            here_s, there_s = way_s(figures, site, after), way_s(figures, after, site)
            round_s, back_s = round_s + here_s, back_s + there_s
            if at < last_at:
                before_s += even_share(layers, chunks, 0) * each_s + here_s + there_s
            count = chunks if at < last_at else chunks - 1
            if last_at == 1:
                count = 2 * chunks - 1
            transfer_s = max(figures.outer_s[site, after, 0], figures.outer_s[after, site, 0])
            longest_s = max(longest_s, num_microbatches * count * transfer_s)
    site, share = chain[last_at], split[last_at, 1] // chunks // split[last_at, 0]
    pass_s = share * least.passes_s[site, 0], share * least.passes_s[site, 1]
    rounds_s = _rounds_s(rules, group_size(rules, num_workers), (round_s, back_s), pass_s)
    return max(longest_s, before_s + rounds_s)


@lean_kernel
def _rounds_s(
    rules: TimingRules, size: int, rounds_s: tuple[float, float], passes_s: tuple[float, float]
) -> float:
    """Least time of the last device by rounds of groups, forward and back. [s]"""
    more, total_s, num_microbatches = rules.num_chunks - 1, 0.0, rules.num_microbatches
    forward_s, backward_s = passes_s
    both_s = forward_s + (backward_s if num_microbatches >= size else 0.0)
    for first in range(0, num_microbatches, size):
        count = min(size, num_microbatches - first)
        total_s += more * max(rounds_s[0], count * (forward_s if first == 0 else both_s))
        total_s += (count - 1) * both_s + (both_s if first + size < num_microbatches else 0.0)
    left = min(more * size, num_microbatches * rules.num_chunks)
    return total_s + max(left * backward_s, more * rounds_s[1])
