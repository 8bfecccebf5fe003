"""The best binding of an option to GPUs, by branch and bound in compiled code."""

from typing import NamedTuple

import numpy as np

from agents.hi_ppo.local.binding import (
    ROUNDING,
    BindingWork,
    device_s_of,
    exchange_s_of,
    hop_s_of,
    least_step_s,
)
from des.base.jit import kernel
from des.devices.rings import Real, Whole, Wires


class Times(NamedTuple):
    """Sums over devices 0, 1, ...: slowest device or wire, all of them, longest gradient sum."""

    slowest_s: Real
    total_s: Real
    exchange_s: Real


@kernel
def best_binding(
    work: BindingWork, wires: Wires, free: Whole, limit_s: float, binding: Whole
) -> float:
    """Write the best binding and return its time, if that is below a limit; else infinity. [s]

    Depth first over the places, a GPU each. Ranks of all tensor groups may change places together,
    and so may replicas of all devices: on the first device the lowest GPU has the first place, and
    those next to and below it rise. Where a device is complete, the branch ends if devices that are
    left cannot make it quicker than the limit, each with the fastest ring of all.
    """
    used, size = work.tensor * work.data * work.pipeline, work.tensor * work.data
    rest_slowest_s, rest_total_s = _least_rest(work, wires, free)
    times = Times(np.zeros(9), np.zeros(9), np.zeros(9))
    trial, choice = np.zeros(used, dtype=np.int64), np.zeros(used + 1, dtype=np.int64)
    taken, place, best_s = 0, 0, np.inf
    choice[0] = -1
    while place >= 0:
        if choice[place] >= 0:
            taken ^= 1 << trial[place]
        choice[place] += 1
        while choice[place] < free.size and not _may_take(
            work, trial, place, free[choice[place]], taken
        ):
            choice[place] += 1
        if choice[place] == free.size:
            choice[place] = -1
            place -= 1
            continue
        trial[place] = free[choice[place]]
        taken ^= 1 << trial[place]
        if (place + 1) % size == 0:
            device = place // size
            _note_device(work, wires, trial, device, times)
            bound_s = work.fill * max(times.slowest_s[device + 1], rest_slowest_s[device + 1])
            bound_s += times.total_s[device + 1] + rest_total_s[device + 1]
            bound_s += times.exchange_s[device + 1]
            if bound_s >= limit_s:
                continue
            if place + 1 == used:
                best_s = limit_s = bound_s
                binding[:used] = trial
                continue
        place += 1
        choice[place] = -1
    return best_s


@kernel
def _may_take(work: BindingWork, trial: Whole, place: int, gpu: int, taken: int) -> bool:
    if taken >> gpu & 1:
        return False
    if place == 0 or place >= work.tensor * work.data:
        return True
    if gpu < trial[0]:
        return False
    if place < work.tensor:
        return bool(gpu > trial[place - 1])
    return place % work.tensor != 0 or bool(gpu > trial[place - work.tensor])


@kernel
def _note_device(work: BindingWork, wires: Wires, trial: Whole, device: int, times: Times) -> None:
    device_s = device_s_of(work, wires, trial, device)
    hop_s, transfer_s = hop_s_of(work, wires, trial, device)
    times.slowest_s[device + 1] = max(times.slowest_s[device], device_s, transfer_s)
    times.total_s[device + 1] = times.total_s[device] + (device_s + 2.0 * hop_s)
    exchange_s = exchange_s_of(work, wires, trial, device)
    times.exchange_s[device + 1] = max(times.exchange_s[device], exchange_s)


@kernel
def _least_rest(work: BindingWork, wires: Wires, free: Whole) -> tuple[Real, Real]:
    """Least that devices 0, 1, ... and all behind them can take: the slowest, and in all."""
    everywhere = 0
    for gpu in free:
        everywhere |= 1 << gpu
    step_s = least_step_s(wires, everywhere, work.tensor, work.tensor_bytes)
    slowest_s, total_s = np.zeros(work.pipeline + 1), np.zeros(work.pipeline + 1)
    for device in range(work.pipeline - 1, -1, -1):
        device_s = work.compute_s[device] + work.tensor_steps[device] * step_s
        slowest_s[device] = max(slowest_s[device + 1], device_s)
        total_s[device] = total_s[device + 1] + device_s * (1.0 - ROUNDING)
    return slowest_s, total_s
