"""Small worlds of sites that come and go."""

import json
from pathlib import Path

import numpy as np

from des.dynamics.site_course import SiteCourse
from des.dynamics.site_law import SiteLaw, SpotLaw
from des.dynamics.stay_law import StayLaw
from des.spot.offers import Offers, StateSizes
from des.spot.spot_law import draw_course
from des.spot.world import SpotView, SpotWorld

HOUR_S = 3600.0


def stays(median_s: float, long_s: float) -> StayLaw:
    """A heavy-tailed law: short stays, and as many long ones."""
    return StayLaw(weight=0.5, median_s=median_s, sigma=0.5, other_median_s=long_s, other_sigma=1.5)


def three_sites(correlation: float = 0.3) -> SpotLaw:
    """Sites that are up for less and less of the time."""
    longs_h = (8.0, 3.0, 1.0)
    return SpotLaw(
        sites=tuple(
            SiteLaw(name=name, up=stays(900.0, long_h * HOUR_S), down=stays(900.0, HOUR_S))
            for name, long_h in zip("abc", longs_h, strict=True)
        ),
        correlation=correlation,
        daily_swing=0.2,
        peak_h=6.0,
    )


def all_sets(num_sites: int) -> np.ndarray:
    """Every set of sites, (C, S)."""
    numbers = np.arange(1, 2**num_sites)
    return (numbers[:, np.newaxis] >> np.arange(num_sites) & 1).astype(np.bool_)


def set_offers(num_sites: int = 3, *, restart_s: float = 120.0) -> Offers:
    """Sets of equal sites, whose rate grows by less than their number."""
    needs = all_sets(num_sites)
    size = needs.sum(axis=1)
    sizes = StateSizes(
        state_bytes=9.8e11,
        storage_bytes_per_s=np.full(num_sites, 4e9),
        link_bytes_per_s=np.full((num_sites, num_sites), 1.25e9),
        restart_s=restart_s,
    )
    return Offers.of_sets(
        ["".join("abcdefgh"[site] for site in np.flatnonzero(row)) for row in needs],
        needs,
        1e5 * size**0.8,
        needs / size[:, np.newaxis],
        sizes,
        gpus=np.full(num_sites, 64),
        usd_per_gpu_s=np.full(num_sites, 2.0 / HOUR_S),
        losses_per_s=0.5 / HOUR_S,
    )


def drawn_world(seed: int, num_ticks: int = 600, **settings: object) -> SpotWorld:
    """A world of `three_sites`."""
    course = draw_course(three_sites(), seed, num_ticks, 195.0)
    return SpotWorld(course=course, offers=set_offers(), **settings)  # type: ignore[arg-type]


def course_of(rows: list[list[int]], tick_s: float = 60.0) -> SiteCourse:
    """SiteCourse of given ticks, a row each."""
    up = np.array(rows, np.bool_)
    return SiteCourse(sites=tuple("abcdefgh"[: up.shape[1]]), tick_s=tick_s, up=up)


class RandomChoice:
    """Asks for any offer, or none, by position: the same for one world and for many."""

    def __init__(self, num_offers: int, salt: int = 0) -> None:
        self._num_offers, self._salt = num_offers, salt

    def choose(self, view: SpotView) -> np.ndarray:
        """Return an offer for each world."""
        mixed = (view.time_s / 195.0).astype(np.int64) * 7919 + self._salt
        offers = mixed * (mixed + 3) // 2 % (self._num_offers + 3) - 1
        return np.where(offers >= self._num_offers, view.held, offers)


def write_trace(path: Path) -> None:
    """Write the trace of a site, nine days long."""
    counts = draw_course(three_sites(), 3, 4000, 195.0).up[:, 0].astype(int).tolist()
    trace = {"metadata": {"gap_seconds": 195}, "data": counts}
    path.write_text(json.dumps(trace), encoding="utf-8")


def write_clone(folder: Path) -> Path:
    """Write a folder like that of the public traces, of a law, two days long."""
    for place, (path, zones, gap_s, most) in enumerate(
        (
            ("1-node/aws-02-15-2023", 9, 195, 1),
            ("1-node/aws-10-26-2022", 8, 600, 1),
            ("16-node/aws-08-27-2023", 3, 300, 16),
        )
    ):
        own = folder / "availability" / path
        own.mkdir(parents=True)
        for zone in range(zones):
            up = draw_course(three_sites(), 100 * place + zone, 172_800 // gap_s, gap_s).up[:, 0]
            trace = {"metadata": {"gap_seconds": gap_s}, "data": (up * most).tolist()}
            (own / f"zone-{zone}.json").write_text(json.dumps(trace), encoding="utf-8")
    return folder
