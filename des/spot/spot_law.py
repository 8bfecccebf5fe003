"""Law of sites that come and go: heavy-tailed stays, a common factor, a mild daily term.

Every course is a function of (law, seed, site): random numbers are by position. A stay that begins
at a time has the quantile ``Phi(z)`` of its law, ``z = +-sqrt(c) common + sqrt(1 - c) own``, where
``common`` is drawn again every `COMMON_S` and the sign is minus for stays down: sites come and go
together by the correlation ``c``, and every stay keeps its law (a Gaussian copula).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from des.base.checks import require_seed
from des.base.jit import kernel
from des.base.random_numbers import philox, unit
from des.dynamics.site_course import DAY_S, SiteCourse
from des.dynamics.site_law import SiteLaw, SpotLaw
from des.dynamics.stay_law import USUAL_STAYS_UP, StayLaw
from des.spot.stay_kernels import stay_length_s

COMMON_S = 6 * 3600.0
"""Time for which the common factor lasts: a choice. [s]"""
_BEFORE_S = 10 * DAY_S
"""Courses begin so long before time 0, so that they do not start all up. [s]"""
_OWN, _COMMON = 16, 17  # streams of random numbers


def draw_course(law: SpotLaw, seed: int, num_ticks: int, tick_s: float) -> SiteCourse:
    """Draw the course of a seed."""
    require_seed("spot law", "seed", seed)
    up = np.zeros((num_ticks, len(law.sites)), np.bool_)
    shares = np.array([site.share_up for site in law.sites])
    common = (law.correlation, law.daily_swing, law.peak_h)
    _draw(seed, law.figures, shares, common, (tick_s, up))
    return SiteCourse(sites=tuple(site.name for site in law.sites), tick_s=tick_s, up=up)


def _stays(scale: float, *, is_up: bool) -> StayLaw:
    """Stays like those that were counted in the traces of 2023, some sites being up for longer."""
    if is_up:
        return replace(USUAL_STAYS_UP, other_median_s=7200.0 * scale)
    return replace(USUAL_STAYS_UP, other_median_s=3600.0 * (1.6 / scale), other_sigma=1.1)


def synthetic_law(scales: Sequence[float], correlation: float = 0.5) -> SpotLaw:
    """Law of sites with heavy-tailed stays; those of a higher scale are up for longer."""
    return SpotLaw(
        sites=tuple(
            SiteLaw(
                name=f"zone{place}",
                up=_stays(scale, is_up=True),
                down=_stays(scale, is_up=False),
            )
            for place, scale in enumerate(scales)
        ),
        correlation=correlation,
        daily_swing=0.15,
        peak_h=5.0,
    )


@kernel
def _draw(
    seed: int,
    figures: np.ndarray,
    shares: np.ndarray,
    common: tuple[float, float, float],
    course: tuple[float, np.ndarray],
) -> None:
    """Fill the course of every site, (T, S) by its tick, with stay after stay.

    ``common`` is correlation, daily swing and hour of its peak.
    """
    tick_s, up = course
    correlation, swing, peak_h = common
    num_ticks, num_sites = up.shape
    for site in range(num_sites):
        first, _, _, _ = philox(seed, _OWN, site, 0, 0, 0)
        is_up = unit(first) < shares[site]
        now_s, number, tick = -_BEFORE_S, 1, 0
        while tick < num_ticks:
            own = _normal(seed, _OWN, site, number)
            shared = _normal(seed, _COMMON, math.floor(now_s / COMMON_S) + 2**20, 0)
            sign = 1.0 if is_up else -1.0
            z = sign * math.sqrt(correlation) * shared + math.sqrt(1.0 - correlation) * own
            survival = 0.5 * math.erfc(z * math.sqrt(0.5))
            stay_s = stay_length_s(figures[site, 0 if is_up else 1], survival)
            daily_factor = 1.0 + swing * math.cos(2.0 * math.pi * (now_s - 3600.0 * peak_h) / DAY_S)
            now_s += stay_s * daily_factor if is_up else stay_s / daily_factor
            while tick < num_ticks and tick * tick_s < now_s:
                up[tick, site] = is_up
                tick += 1
            is_up = not is_up
            number += 1


@kernel
def _normal(seed: int, stream: int, first: int, second: int) -> float:
    """Draw a standard normal number at a position (Box and Muller, 1958)."""
    word_0, word_1, _, _ = philox(seed, stream, first, second, 1, 0)
    radius = math.sqrt(-2.0 * math.log(1.0 - unit(word_0)))
    return radius * math.cos(2.0 * math.pi * unit(word_1))
