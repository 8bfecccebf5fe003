"""Multiples of a quantum: the times at which running jobs may be suspended."""

import math

LEAST_QUANTUM_S = 1e-3
"""Shortest quantum; a shorter one would make more decisions than a run can. [s]"""


def is_tick(now_s: float, quantum_s: float) -> bool:
    """Whether a time is a multiple of a quantum; every time is one of a quantum of 0.

    Examples
    --------
    >>> is_tick(3 * 0.3, 0.3), is_tick(1.0, 0.3), is_tick(1.0, 0.0)
    (True, False, True)
    """
    return quantum_s == 0 or now_s == round(now_s / quantum_s) * quantum_s


def tick_after(now_s: float, quantum_s: float) -> float:
    """First multiple of a quantum after a time. [s]

    Raises
    ------
    ValueError
        If the quantum is below the last digit of the time: no later multiple exists.

    Examples
    --------
    >>> tick_after(0.5, 0.1), tick_after(600.0, 300.0)  # 0.5 // 0.1 is 4
    (0.6000000000000001, 900.0)
    """
    number = math.floor(now_s / quantum_s)
    for multiple in range(number, number + 3):
        if multiple * quantum_s > now_s:
            return multiple * quantum_s
    raise ValueError(
        f"ordering: quantum_s must be 0 or at least {math.ulp(now_s):.3g}, the last digit of the "
        f"time {now_s:g} s, got {quantum_s!r}"
    )


def require_quantum(quantum_s: float) -> None:
    """Refuse a quantum so short that a run would never end.

    Raises
    ------
    ValueError
        If it is neither 0 nor at least `LEAST_QUANTUM_S`.
    """
    if quantum_s != 0 and not LEAST_QUANTUM_S <= quantum_s < math.inf:
        raise ValueError(
            f"ordering: quantum_s must be 0 (at every event) or at least {LEAST_QUANTUM_S} s and "
            f"finite, got {quantum_s!r}"
        )
