"""Courses of sites, their traces, and laws of their stays."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spot_cases import HOUR_S, course_of, stays, three_sites

from des.base.command import UsageError
from des.dynamics.site_course import SiteCourse
from des.dynamics.site_law import SpotLaw
from des.dynamics.stay_law import StayLaw
from des.spot.law_fit import fit_spot_law, mean_correlation
from des.spot.spot_law import draw_course
from des.spot.stay_kernels import stay_length_s, stay_survival
from des.world.files.spot_trace_files import read_spot_traces

bits = st.lists(st.booleans(), min_size=1, max_size=60)


def _write(folder: Path, name: str, content: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def _trace(data: list[int], gap_s: float = 300) -> dict[str, object]:
    return {"metadata": {"gap_seconds": gap_s}, "data": data}


def test_stays_of_a_course_counted_by_hand() -> None:
    """First and last stays are not whole: how long they last is not known."""
    course = course_of([[1], [1], [0], [1], [1], [1], [0], [0], [1]])

    up_s, down_s = course.stays(0)

    assert (up_s.tolist(), down_s.tolist()) == ([180.0], [60.0, 120.0])
    assert course.stays(0, are_whole=False)[0].tolist() == [120.0, 180.0, 60.0]


@given(up=bits)
def test_stays_add_up_to_the_course(up: list[bool]) -> None:
    """Every tick belongs to one stay."""
    course = course_of([[each] for each in up])

    assert sum(part.sum() for part in course.stays(0, are_whole=False)) == course.duration_s


@given(up=bits, factor=st.integers(1, 5))
def test_a_stretched_course_repeats_every_tick(up: list[bool], factor: int) -> None:
    """Stretching by a whole number leaves the share of the time up as it is."""
    course = course_of([[each] for each in up])

    stretched = course.stretched(factor)

    assert stretched.up[:, 0].tolist() == np.repeat(up, factor).tolist()
    assert stretched.shares == pytest.approx(course.shares)


@given(up=bits, factor=st.floats(1, 5))
def test_a_thinned_course_is_up_only_where_it_was(up: list[bool], factor: float) -> None:
    """Each stay up begins when it did and is shorter."""
    course = course_of([[each] for each in up])

    thinned = course.thinned(factor)

    assert not (thinned.up & ~course.up).any()
    begins = course.up[:, 0] & ~np.roll(course.up[:, 0], 1)
    assert thinned.up[1:, 0][begins[1:]].all()


def test_traces_are_read_side_by_side(tmp_path: Path) -> None:
    """Zones have their files' names; a zone is up from a number of servers on."""
    _write(tmp_path, "west", _trace([0, 8, 16, 16]))
    _write(tmp_path, "east", _trace([16, 16, 0]))

    course = read_spot_traces(tmp_path, least_servers=16)

    assert (course.sites, course.tick_s) == (("east", "west"), 300.0)
    assert course.up.astype(int).tolist() == [[1, 0], [1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_trace([]), r"bad\.json: data: .* at least 1 item"),
        (_trace([1, -1]), r"bad\.json: data.* greater than or equal to 0"),
        (_trace([1], gap_s=0), r"bad\.json: metadata.*gap_seconds.* greater than 0"),
        ({"data": [1]}, r"bad\.json: metadata"),
        (_trace([1], gap_s=600), r"bad\.json: metadata\.gap_seconds must be 300 as in a\.json"),
    ],
)
def test_a_bad_trace_is_named(tmp_path: Path, content: object, message: str) -> None:
    """File, field, what is allowed."""
    _write(tmp_path, "a", _trace([1, 0]))
    _write(tmp_path, "bad", content)

    with pytest.raises(ValueError, match=message):
        read_spot_traces(tmp_path)


def test_a_folder_without_traces_is_refused(tmp_path: Path) -> None:
    """Neither an empty folder nor none is a trace."""
    with pytest.raises(UsageError, match=r"must hold \*\.json files"):
        read_spot_traces(tmp_path)
    with pytest.raises(UsageError, match="must be a folder"):
        read_spot_traces(tmp_path / "none")


def test_one_log_normal_survives_its_median_by_a_half() -> None:
    """Closed form: the median, and one sigma above it."""
    law = StayLaw(weight=1.0, median_s=600.0, sigma=0.7, other_median_s=1.0, other_sigma=1.0)
    figures = np.array(law.figures)

    assert stay_survival(figures, 600.0) == pytest.approx(0.5)
    assert stay_survival(figures, 600.0 * math.exp(0.7)) == pytest.approx(0.15865525)


@given(survival=st.floats(1e-3, 0.999))
def test_lengths_invert_survival(survival: float) -> None:
    """A stay outlasts the length of a probability by that probability."""
    figures = np.array(stays(900.0, HOUR_S).figures)

    assert stay_survival(figures, stay_length_s(figures, survival)) == pytest.approx(survival)


def test_a_fit_finds_the_two_parts_that_lengths_were_drawn_from() -> None:
    """Two log-normals far apart, 30 % of the short one."""
    rng = np.random.default_rng(0)
    short = rng.random(20_000) < 0.3
    logs = np.where(short, rng.normal(math.log(600), 0.5, 20_000), rng.normal(11.0, 0.8, 20_000))

    law = StayLaw.fitted(np.exp(logs))

    assert (law.weight, law.sigma, law.other_sigma) == pytest.approx((0.3, 0.5, 0.8), abs=0.02)
    assert (law.median_s, math.log(law.other_median_s)) == pytest.approx((600, 11.0), rel=0.02)


def test_courses_of_a_law_are_up_for_the_share_of_their_stays() -> None:
    """Renewal theorem: mean up over mean up and down, of one site for 10 years."""
    law = three_sites(0.0)
    flat = SpotLaw(sites=law.sites)

    course = draw_course(flat, 0, 900_000, 300.0)

    assert course.shares == pytest.approx([site.share_up for site in law.sites], abs=0.06)


def test_a_site_has_the_same_course_beside_fewer_sites() -> None:
    """Courses are a function of the seed and the place of a site."""
    law = three_sites()
    fewer = SpotLaw(sites=law.sites[:2], correlation=0.3, daily_swing=0.2, peak_h=6.0)

    assert (draw_course(law, 7, 500, 195.0).up[:, :2] == draw_course(fewer, 7, 500, 195.0).up).all()
    assert (draw_course(law, 7, 500, 195.0).up != draw_course(law, 8, 500, 195.0).up).any()


def test_a_fitted_law_has_the_shares_and_correlation_of_its_course() -> None:
    """Measured on a course of the law itself, for a year."""
    course = draw_course(three_sites(0.6), 0, 100_000, 300.0)

    law = fit_spot_law(course)

    assert [site.share_up for site in law.sites] == pytest.approx(course.shares.tolist(), abs=0.1)
    again = draw_course(law, 1, 100_000, 300.0)
    assert mean_correlation(again) == pytest.approx(mean_correlation(course), abs=0.05)
    pooled = fit_spot_law(course, pooled=True)
    assert len({(site.up, site.down) for site in pooled.sites}) == 1


def test_a_course_needs_ticks_and_sites() -> None:
    """An empty course is no course."""
    with pytest.raises(ValueError, match="course: up must be ticks x 1 sites"):
        SiteCourse(sites=("a",), tick_s=60.0, up=np.zeros((0, 1), np.bool_))
