"""Law of sites that come and go: stays of each, a common factor, a mild daily term."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from des.base.checks import require_non_negative, require_swing
from des.dynamics.correlation import require_correlation
from des.dynamics.stay_law import StayLaw

NOTICE_S = {"aws": 120.0, "gcp": 30.0, "none": 0.0}
"""Time between notice and loss of a spot instance, as the providers document it. [s]"""


_ALWAYS, _NEVER = StayLaw.of_mean(1e10), StayLaw.of_mean(1.0)
"""Stays up of 300 years, and stays down of a second."""


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
    sites
        At least one, each named once.
    correlation
        That of the normal numbers behind stays of two sites that begin in the same
        `des.spot.spot_law.COMMON_S`.
    daily_swing
        Stays up that begin at ``peak_h`` are longer by this share, 12 hours later shorter by it;
        stays down the other way round.
    peak_h
        Hour of the day, from the begin of a course. [h]
    notice_s
        Time from the notice to the loss of a site: a checkpoint that takes no longer is written.
    """

    sites: tuple[SiteLaw, ...]
    correlation: float = 0.0
    daily_swing: float = 0.0
    peak_h: float = 0.0
    notice_s: float = NOTICE_S["aws"]

    def __post_init__(self) -> None:
        names = [site.name for site in self.sites]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"spot law: sites must be at least one, each once; got {names}")
        require_non_negative("spot law", "notice_s", self.notice_s)
        require_correlation("spot law", self.correlation)
        require_swing("spot law", "daily_swing", self.daily_swing)

    @property
    def figures(self) -> np.ndarray:
        """Figures of stays up and down, (S, 2, 5), as kernels take them."""
        return np.array([(site.up.figures, site.down.figures) for site in self.sites])

    def over(self, names: Sequence[str]) -> "SpotLaw":
        """Return the law of some sites in their order; those without a law are always up."""
        known = {site.name: site for site in self.sites}
        always = {name: SiteLaw(name=name, up=_ALWAYS, down=_NEVER) for name in names}
        return replace(self, sites=tuple((always | known)[name] for name in names))
