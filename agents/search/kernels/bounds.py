"""Least time of a pipeline: no run of its operations is shorter, laid out or in any split."""

import numpy as np

from agents.search.kernels.layouts import num_held
from agents.search.kernels.records import Room, SiteFigures, TimingRules
from des.base.jit import inner_kernel, lean_kernel

_ROUNDING = 1.0 + 1e-9
"""Share of a limit that is left for sums in another order."""


@inner_kernel
def least_s(rules: TimingRules, num_workers: int, room: Room) -> float:
    """Time that all microbatches and the sums over copies take at least, without updates. [s]

    Of every worker: until the first message comes, then what it does or sends, then the way back of
    the last gradient. With one chunk also the rounds of a microbatch to the last worker and back,
    of which it holds a limited number at a time.
    """
    count = rules.num_microbatches
    back = 2 if rules.pace[1] >= 0.0 else 1
    longest_s = head_s = tail_s = round_s = 0.0
    if rules.num_chunks == 1:
        for worker in range(num_workers):
            round_s += _around_s(room, worker, num_workers, back)
    for worker in range(num_workers):
        forward_s, back_s, down_s, up_s = _work_of(rules, num_workers, worker, back, room)
        own_s, sent_s = forward_s + back_s, max(down_s, up_s)
        hold_s = 0.0
        if rules.is_blocking and worker > 0:  # the last send is part of the way back
            hold_s = room.borders_s[worker - 1, 2] + room.borders_s[worker - 1, 3]
        around_s = head_s + tail_s
        busy_s = count * own_s - hold_s
        longest_s = max(
            longest_s,
            around_s + room.sums_s[0] + busy_s,
            head_s + room.sums_s[worker] + busy_s,
            head_s + count * sent_s,
        )
        if rules.num_chunks == 1:
            held = num_held(rules, num_workers, worker)
            rounds = (count - 1) // held + 1
            longest_s = max(
                longest_s,
                around_s + round_s + (count - 1) * sent_s,
                around_s + round_s + (count - held) * forward_s + (count - 1) * back_s,
                around_s + rounds * round_s + (count - 1 - (rounds - 1) * held) * back_s,
            )
            if back == 2:
                longest_s = max(longest_s, head_s + count * (own_s + room.passes_s[worker, 3]))
            round_s -= _around_s(room, worker, num_workers, back)
        if worker < num_workers - 1:
            head_s += room.passes_s[worker, 0]
            head_s += room.borders_s[worker, 0] + room.borders_s[worker, 1]
            tail_s += room.passes_s[worker, back]
            tail_s += room.borders_s[worker, 2] + room.borders_s[worker, 3]
    return longest_s


@inner_kernel
def rest_s(rules: TimingRules, num_workers: int, num_done: int, room: Room) -> float:
    """Least time of a pipeline of single chunks that has begun, as `least_s`. [s]

    ``num_done`` microbatches are through backward passes, ``room.done`` of each worker through
    forward ones, and workers are free when ``room.free_s`` says.
    """
    count = rules.num_microbatches
    back = 2 if rules.pace[1] >= 0.0 else 1
    longest_s = tail_s = 0.0
    for worker in range(num_workers):
        forward_s, back_s, _, _ = _work_of(rules, num_workers, worker, back, room)
        own_s = room.free_s[worker] + tail_s
        own_s += (count - room.done[worker]) * forward_s + (count - num_done) * back_s
        if rules.is_blocking and worker > 0:  # the last send is part of the way back
            own_s -= room.borders_s[worker - 1, 2] + room.borders_s[worker - 1, 3]
        longest_s = max(longest_s, own_s + room.sums_s[0], own_s - tail_s + room.sums_s[worker])
        if worker < num_workers - 1:
            tail_s += room.passes_s[worker, back]
            tail_s += room.borders_s[worker, 2] + room.borders_s[worker, 3]
    return longest_s


@inner_kernel
def _around_s(room: Room, worker: int, num_workers: int, back: int) -> float:
    """Passes of a microbatch by a worker of one chunk, and its messages to the next and back."""
    found_s = room.passes_s[worker, 0] + room.passes_s[worker, back]
    if worker < num_workers - 1:
        for part in range(4):
            found_s += room.borders_s[worker, part]
    return float(found_s)


@inner_kernel
def _work_of(
    rules: TimingRules, num_workers: int, worker: int, back: int, room: Room
) -> tuple[float, float, float, float]:
    """Times that a microbatch holds a worker up, forward and back, and is sent, down and up. [s]"""
    num_stages = num_workers * rules.num_chunks
    forward_s = back_s = down_s = up_s = 0.0
    for stage in range(worker, num_stages, num_workers):
        forward_s += room.passes_s[stage, 0]
        back_s += room.passes_s[stage, back]
        if stage < num_stages - 1:
            down_s += room.borders_s[stage, 0]
            if rules.is_blocking:
                forward_s += room.borders_s[stage, 0] + room.borders_s[stage, 1]
        if stage > 0:
            up_s += room.borders_s[stage - 1, 2]
            if rules.is_blocking:
                back_s += room.borders_s[stage - 1, 2] + room.borders_s[stage - 1, 3]
    return forward_s, back_s, down_s, up_s


@lean_kernel
def may_take_less(
    figures: SiteFigures, rules: TimingRules, chain: np.ndarray, limit_s: float
) -> bool:
    """Whether a split of a chain may take less than a time, see `has_layers`."""
    return has_layers(figures, rules, chain, limit_s / quickest_share(figures))


@inner_kernel
def quickest_share(figures: SiteFigures) -> float:
    """Least time of a layer over the mean one, of any site: as if all were as quick, at most 1."""
    least = 1.0
    for site in range(len(figures.num_devices)):
        sums = figures.passes_s[site]
        for layer in range(len(sums[0]) - 1 if figures.num_devices[site] > 0 else 0):
            own_s = sums[0, layer + 1] - sums[0, layer] + sums[1, layer + 1] - sums[1, layer]
            least = min(least, own_s / figures.layer_s[site])
    return max(least, 1e-9)


@inner_kernel
def has_layers(figures: SiteFigures, rules: TimingRules, chain: np.ndarray, limit_s: float) -> bool:
    """Whether devices of a chain have time for all layers, each of the mean time, in a limit.

    A device works from the first message on until the last gradient is on its way back; of one
    chunk the layers before it are at least those that it and those after it have no time for.
    """
    num_layers = figures.passes_s.shape[2] - 1
    left, fill_s = 0.0, np.inf
    for turn in range(2):
        total, links_s = 0.0, 0.0
        for at in range(len(chain)):
            site = chain[at]
            devices = figures.num_devices[site]
            for device in range(devices):
                free_s = limit_s * _ROUNDING - links_s
                if turn == 1 and left < num_layers:
                    free_s -= fill_s * (num_layers - left)
                own = _most_layers(figures, rules, chain, at, device, free_s)
                if own < 1.0 and (device == 0 or device == devices - 1):
                    return False
                total += own
                if turn == 1:
                    before_s = limit_s * _ROUNDING - links_s
                    left -= _most_layers(figures, rules, chain, at, device, before_s)
            if at + 1 < len(chain):
                links_s += _sent_s(figures, chain[at], chain[at + 1])
                if rules.pace[1] < 0.0:
                    links_s += _sent_s(figures, chain[at + 1], chain[at])
            if turn == 0:
                fill_s = min(fill_s, _pass_s(figures, rules, site))
        left = total
        if total < num_layers:
            return False
        if rules.num_chunks > 1:
            break
    return True


@inner_kernel
def _pass_s(figures: SiteFigures, rules: TimingRules, site: int) -> float:
    """Mean time of a layer on the way of a microbatch, and back unless halves may come later."""
    if rules.pace[1] < 0.0:
        return float(figures.layer_s[site])
    num_layers = figures.passes_s.shape[2] - 1
    return float(figures.passes_s[site, 0, num_layers] / num_layers)


@inner_kernel
def _sent_s(figures: SiteFigures, source: int, target: int) -> float:
    """Time of a message from site to site. [s]"""
    return float(figures.outer_s[source, target, 0] + figures.outer_s[source, target, 1])


@inner_kernel
def _most_layers(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    at: int,
    device: int,
    free_s: float,
) -> float:
    """Most layers of a device of a site, which sends that block hold up if it is one at an end."""
    site, count = chain[at], rules.num_microbatches
    if rules.is_blocking and rules.num_chunks == 1:
        if device == 0 and at > 0:
            free_s -= (count - 1) * _sent_s(figures, site, chain[at - 1])
        if device == figures.num_devices[site] - 1 and at + 1 < len(chain):
            free_s -= (count - 1) * _sent_s(figures, site, chain[at + 1])
    own_s = count * figures.layer_s[site]
    return float(min(float(figures.most_layers[site]), np.floor(free_s / own_s)))
