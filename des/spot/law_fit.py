"""Fit of a law of sites to a measured course."""

import math
from dataclasses import replace

import numpy as np

from des.dynamics.site_course import DAY_S, SiteCourse
from des.dynamics.site_law import SiteLaw, SpotLaw
from des.dynamics.stay_law import StayLaw
from des.spot.spot_law import draw_course

_LEAST_STAYS = 8
"""Sites with fewer stays take the pooled law."""
_HALVINGS = 7
_MOST_SWING = 0.9


def fit_spot_law(course: SiteCourse, *, pooled: bool = False) -> SpotLaw:
    """Fit stays of each site (pooled: of all together), their correlation and the daily term.

    Notes
    -----
    First and last stays count with the length that was seen: to leave them out would lose the
    longest ones. The correlation is that whose courses (seed 0) correlate between pairs of sites
    as the measured one does on the mean, by halving; negative ones count as 0. The daily swing is
    the first harmonic of the share p of sites up, relative to ``2 p (1 - p)``: by so much p moves
    for a relative change of both stays.

    Raises
    ------
    ValueError
        If the course has fewer than 4 stays up or down.
    """
    stays = [course.stays(site, are_whole=False) for site in range(len(course.sites))]
    every = [np.concatenate([each[side] for each in stays]) for side in (0, 1)]
    pool = [StayLaw.fitted(lengths_s) for lengths_s in every]
    sites = []
    for name, own in zip(course.sites, stays, strict=True):
        is_own = not pooled and min(map(len, own)) >= _LEAST_STAYS
        up, down = map(StayLaw.fitted, own) if is_own else pool
        sites.append(SiteLaw(name=name, up=up, down=down))
    swing, peak_h = _daily(course)
    bare = SpotLaw(sites=tuple(sites), daily_swing=swing, peak_h=peak_h)
    return _correlated(bare, course)


def mean_correlation(course: SiteCourse) -> float:
    """Mean correlation of pairs of sites; 0 where no two of them both come and go."""
    moving = course.up[:, course.up.std(axis=0) > 0].astype(np.float64)
    if moving.shape[1] < 2:
        return 0.0
    matrix = np.atleast_2d(np.corrcoef(moving.T))
    return float(matrix[np.triu_indices(len(matrix), 1)].mean())


def _correlated(law: SpotLaw, course: SiteCourse) -> SpotLaw:
    target = mean_correlation(course)
    low, high, found = 0.0, 1.0, law
    if target <= 0 or len(course.sites) < 2:
        return law
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        found = replace(law, correlation=middle)
        if mean_correlation(draw_course(found, 0, course.num_ticks, course.tick_s)) < target:
            low = middle
        else:
            high = middle
    return found


def _daily(course: SiteCourse) -> tuple[float, float]:
    """Swing and peak [h] of the share of sites up, by the first harmonic of a day."""
    share = course.up.mean(axis=1)
    mean = float(share.mean())
    whole = int(course.duration_s / DAY_S) * round(DAY_S / course.tick_s)
    if not 0 < mean < 1 or whole == 0:
        return 0.0, 0.0
    angles = 2 * math.pi * np.arange(whole) * course.tick_s / DAY_S
    wave = 2 * complex(np.mean((share[:whole] - mean) * np.exp(1j * angles)))
    swing = min(abs(wave) / (2 * mean * (1 - mean)), _MOST_SWING)
    return swing, math.atan2(wave.imag, wave.real) * 24 / (2 * math.pi) % 24
