"""Law of sites that come and go: stays of each, a common factor, a mild daily term."""

from dataclasses import dataclass

import numpy as np

from des.base.checks import require_swing
from des.dynamics.correlation import require_correlation
from des.dynamics.stay_law import StayLaw

NOTICE_S = {"aws": 120.0, "gcp": 30.0, "none": 0.0}
"""Time between notice and loss of a spot instance, as the providers document it. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLaw:
    """Stays of a site."""

    name: str
    up: StayLaw
    down: StayLaw

    @property
    def share_up(self) -> float:
        """Share of the time for which the site is up in the long run."""
        return self.up.mean_s / (self.up.mean_s + self.down.mean_s)


@dataclass(frozen=True, kw_only=True)
class SpotLaw:
    """Law of several sites.

    Attributes
    ----------
    correlation
        That of the normal numbers behind stays of two sites that begin in the same `COMMON_S`.
    daily_swing
        Stays up that begin at ``peak_h`` are longer by this share, 12 hours later shorter by it;
        stays down the other way round.
    peak_h
        Hour of the day, from the begin of a course. [h]
    """

    sites: tuple[SiteLaw, ...]
    correlation: float = 0.0
    daily_swing: float = 0.0
    peak_h: float = 0.0

    def __post_init__(self) -> None:
        require_correlation("spot law", self.correlation)
        require_swing("spot law", "daily_swing", self.daily_swing)

    @property
    def figures(self) -> np.ndarray:
        """Figures of stays up and down, (S, 2, 5), as kernels take them."""
        return np.array([(site.up.figures, site.down.figures) for site in self.sites])
