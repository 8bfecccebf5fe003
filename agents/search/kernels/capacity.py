"""Memory of the sites of a chain for all layers: where it lacks, no quick split of them fits.

Of a site's devices the first one holds the most: the activations of as many microbatches as there
are devices after it, and no fewer layers than the others. Layers count as the leanest one.
"""

import numpy as np

from agents.search.kernels.layouts import num_held
from agents.search.kernels.records import SiteMemory, TimingRules
from des.base.jit import inner_kernel

_ROUNDING = 1.0 + 1e-9
"""Sums over layers may be in another order."""


@inner_kernel
def has_memory(
    memory: SiteMemory,
    num_devices: np.ndarray,
    num_layers: int,
    rules: TimingRules,
    chain: np.ndarray,
) -> bool:
    """Whether the sites of a chain may have memory for all layers."""
    total = 0.0
    for at in range(len(chain)):
        most = min(num_devices[chain[at]], num_layers // rules.num_chunks)
        room_bytes = memory.room_bytes[chain[at]] * _ROUNDING
        if rules.num_chunks == 1:
            total += _most_layers(memory.layer_bytes, room_bytes, rules, most)
        elif len(chain) > 1:
            total += _most_of_chunks(memory.layer_bytes, room_bytes, rules, most)
        elif _holds_chunks(memory.layer_bytes, room_bytes, rules, most, num_layers):
            return True
        if total >= num_layers:
            return True
    return False


@inner_kernel
def _most_layers(
    layer_bytes: np.ndarray, room_bytes: float, rules: TimingRules, most: int
) -> float:
    """Most layers of a site: even ones on some of its devices, or any where sends block."""
    longest, total = 0.0, 0.0
    for depth in range(1, most + 1):
        held = num_held(rules, depth, 0)
        each = np.floor(room_bytes / (layer_bytes[0] + held * layer_bytes[1]))
        total += each
        longest = max(longest, depth * each)
    return total if rules.is_blocking else longest


@inner_kernel
def _most_of_chunks(
    layer_bytes: np.ndarray, room_bytes: float, rules: TimingRules, most: int
) -> float:
    """Most layers of a site among others, where devices have several stages each."""
    state_bytes, kept_bytes, longest, chunks = layer_bytes[0], layer_bytes[1], 0.0, rules.num_chunks
    for devices in range(1, most + 1):
        held_bytes = num_held(rules, devices, 0) * kept_bytes
        of_one = (room_bytes - held_bytes) * devices / state_bytes
        of_all = room_bytes * chunks * devices + held_bytes * (chunks - 1)
        longest = max(longest, min(of_one, of_all / (state_bytes * chunks + held_bytes)))
    return longest


@inner_kernel
def _holds_chunks(
    layer_bytes: np.ndarray, room_bytes: float, rules: TimingRules, most: int, num_layers: int
) -> bool:
    """Whether some of a site's devices hold all layers, in several stages each."""
    for devices in range(1, most + 1):
        least = num_layers // (devices * rules.num_chunks)
        held = num_held(rules, devices, 0) * least
        if layer_bytes[0] * num_layers / devices + held * layer_bytes[1] <= room_bytes:
            return True
    return False
