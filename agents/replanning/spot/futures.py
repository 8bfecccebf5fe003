"""Compiled parts of planning ahead: futures sampled from laws of stays, and the best of them."""

import math

import numpy as np

from des.base.jit import inner_kernel, kernel
from des.base.random_numbers import philox, unit
from des.spot.stay_kernels import stay_survival

_FUTURES = 32  # stream of random numbers
GRID, _SHORTEST_LOG, _LOG_STEP = 400, math.log(10.0), 0.04
"""Lengths at which survival is tabled: from 10 s to 2.5 years, 4 % apart."""


@kernel
def fill_survival_grid(figures: np.ndarray, survivals: np.ndarray) -> None:
    """Fill survival at the grid's lengths, (N, S, 2, G), from figures of stays, (N, S, 2, 5)."""
    for row in range(survivals.shape[0]):
        for site in range(survivals.shape[1]):
            for side in range(2):
                for place in range(GRID):
                    length_s = math.exp(_SHORTEST_LOG + _LOG_STEP * place)
                    survivals[row, site, side, place] = stay_survival(
                        figures[row, site, side], length_s
                    )


@kernel
def _survival_at(survival: np.ndarray, length_s: float) -> float:
    """Survival of a length, in straight lines over logarithms."""
    if length_s <= 10.0:
        return 1.0
    place = min((math.log(length_s) - _SHORTEST_LOG) / _LOG_STEP, GRID - 1.001)
    whole = int(place)
    found: float = survival[whole] + (place - whole) * (survival[whole + 1] - survival[whole])
    return found


@kernel
def _length_at(survival: np.ndarray, share: float) -> float:
    """Length that is outlasted with a probability: the inverse. [s]"""
    low, high = 0, GRID - 1
    while high - low > 1:
        middle = (low + high) // 2
        if survival[middle] > share:
            low = middle
        else:
            high = middle
    fall = survival[low] - survival[high]
    part = (survival[low] - share) / fall if fall > 0.0 else 0.0
    part = min(max(part, 0.0), 1.0)
    return math.exp(_SHORTEST_LOG + _LOG_STEP * (low + part))


@kernel
def sample_futures(
    survivals: np.ndarray,
    past: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    step_s: float,
    futures: np.ndarray,
) -> None:
    """Fill futures, (N, K, H, S), with 1 where a site is up, 0 where it is down."""
    seen_up, age_s, seen_s, time_s = past
    num_rows, num_futures, num_steps, num_sites = futures.shape
    for row in range(num_rows):
        moment = int(time_s[row])
        for future in range(num_futures):
            for site in range(num_sites):
                up = seen_up[row, site]
                age = age_s[row, site] - seen_s[row, site]
                now_s, number, step = -seen_s[row, site], 0, 0
                so_far = _survival_at(survivals[row, site, 0 if up else 1], age)
                while step < num_steps:
                    word, _, _, _ = philox(_FUTURES, moment, future, site, number, 0)
                    survival = (1.0 - unit(word)) * so_far
                    stay_s = _length_at(survivals[row, site, 0 if up else 1], survival)
                    now_s += stay_s - (max(age, 0.0) if number == 0 else 0.0)
                    while step < num_steps and step * step_s < now_s:
                        futures[row, future, step, site] = 1.0 if up else 0.0
                        step += 1
                    so_far, number, up = 1.0, number + 1, not up


@kernel
def value_offers(
    needs: np.ndarray,
    tokens: tuple[np.ndarray, np.ndarray, np.ndarray],
    asked: tuple[np.ndarray, np.ndarray, np.ndarray],
    futures: np.ndarray,
    values: np.ndarray,
) -> None:
    """Add up what the first offer and the best ones after it train over all futures, (N, C).

    Where a site of the first offer is down it is refused: the one held goes on, or the job waits.

    Parameters
    ----------
    tokens
        Of each offer in a step, (N, C), and lost by moves, without and with a checkpoint, from row
        to column, (N, C, C).
    asked
        Tokens lost by the first move, (N, C), the offer held and that with the state, (N,).
    futures
        Chance that sites are up, (N, K, H, S).
    values
        Where to add, (N, C).
    """
    (gains, moves, written), (first, held, homes) = tokens, asked
    num_rows, num_futures, num_steps, _ = futures.shape
    num_offers = gains.shape[1]
    ahead, reached = np.zeros(num_offers), np.zeros(num_offers)
    gained, resumes = np.zeros(num_offers), np.zeros(num_offers, np.bool_)
    for row in range(num_rows):
        for future in range(num_futures):
            resumes[:] = False
            ahead[:] = 0.0  # value after a step, by the offer whose sites have the state
            for step in range(num_steps - 1, -1, -1):
                for offer in range(num_offers):
                    chance = _chance(needs[row, offer], futures[row, future, step])
                    gained[offer] = gains[row, offer] * chance
                    reached[offer] = ahead[offer] + gained[offer] if chance > 0.0 else -np.inf
                if step == 0:
                    break
                for home in range(num_offers):
                    is_lost = reached[home] == -np.inf
                    costs = moves[row, home] if is_lost else written[row, home]
                    best = reached[home]
                    if is_lost:  # waits; the restart is paid once
                        best = ahead[home] - (moves[row, home, home] if resumes[home] else 0.0)
                    for offer in range(num_offers):
                        best = max(best, reached[offer] - costs[offer])
                    gained[home] = best
                for home in range(num_offers):
                    resumes[home] = reached[home] > -np.inf
                ahead[:] = gained
            refused, home = 0.0, homes[row]
            if home >= 0:  # waits; the restart is paid once
                refused = ahead[home] - (moves[row, home, home] if resumes[home] else 0.0)
            if held[row] >= 0:
                refused = ahead[held[row]] + gained[held[row]] - first[row, held[row]]
            for offer in range(num_offers):
                chance = _chance(needs[row, offer], futures[row, future, 0])
                found = ahead[offer] + gains[row, offer] - first[row, offer]
                values[row, offer] += chance * found + (1.0 - chance) * refused


@inner_kernel
def _chance(needs: np.ndarray, up: np.ndarray) -> float:
    product = 1.0
    for site in range(len(up)):
        if needs[site]:
            product *= up[site]
    return product
