"""Random numbers without a state: every one is a function of a seed and a few positions.

Philox4x64-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11), the
generator that numpy has under this name. So nothing depends on who draws first, or in which
process.
"""

import numpy as np

from des.base.jit import inlined, kernel

_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_NUM_ROUNDS = 10


@inlined
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """High and low half of a 128-bit product."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    low_low, high_low, low_high = a_low * b_low, a_high * b_low, a_low * b_high
    middle = (low_low >> _HALF) + (high_low & _LOW) + low_high
    return a_high * b_high + (high_low >> _HALF) + (middle >> _HALF), a * b


@inlined
def philox(
    key_0: int, key_1: int, counter_0: int, counter_1: int, counter_2: int, counter_3: int
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Four random words of 64 bits; arguments are within [0, 2**63)."""
    k0, k1 = np.uint64(key_0), np.uint64(key_1)
    c0, c1 = np.uint64(counter_0), np.uint64(counter_1)
    c2, c3 = np.uint64(counter_2), np.uint64(counter_3)
    for _ in range(_NUM_ROUNDS):
        high_0, low_0 = _product(_MULTIPLIER_0, c0)
        high_1, low_1 = _product(_MULTIPLIER_1, c2)
        c0, c1, c2, c3 = high_1 ^ c1 ^ k0, low_1, high_0 ^ c3 ^ k1, low_0
        k0, k1 = k0 + _WEYL_0, k1 + _WEYL_1
    return c0, c1, c2, c3


@inlined
def unit(word: np.uint64) -> float:
    """Turn a random word into a number within [0, 1), of 53 bits as numpy does it."""
    return np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined
def uniform_pair(seed: int, first: int, second: int) -> tuple[float, float]:
    """Two numbers, uniform within [-1, 1), at position (first, second) of a seed's draws."""
    word_0, word_1, _, _ = philox(seed, 0, first, second, 0, 0)
    return -1.0 + 2.0 * unit(word_0), -1.0 + 2.0 * unit(word_1)


@kernel
def derive_seed(seed: int, first: int, second: int) -> np.int64:
    """Seed within [0, 2**63) for a part of what another seed stands for; never shares its draws."""
    return np.int64(philox(seed, 1, first, second, 0, 0)[0] >> np.uint64(1))
