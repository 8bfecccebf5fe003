"""The section availability of a world file: laws of stays, read, fitted, written, refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spot_cases import stays, three_sites
from strategies import world

from des import read_topology
from des.dynamics.site_law import SiteLaw, SpotLaw
from des.dynamics.stay_law import StayLaw
from des.spot.spot_law import draw_course
from des.world.files.topology_writer import to_yaml
from des.world.files.topology_yaml import from_yaml

WORLD = world("abc", {"ab": (1.0, 0.5)})


def read(availability, folder):
    """The law of a file with a section as text."""
    path = folder / "world.yaml"
    path.write_text(f"{to_yaml(WORLD)}availability: {availability}\n", encoding="utf-8")
    return read_topology(path).availability


def test_mean_lengths_and_whole_laws_are_read_with_their_units(tmp_path):
    full = "{weight: 0.5, median: 15min, sigma: 0.5, other_median: 8h, other_sigma: 1.5}"
    law = read(
        f"{{notice: gcp, correlation: 0.3, sites: {{c: {{up: {full}, down: 30min}}, "
        "a: {up: 2d, down: 90s}}}",
        tmp_path,
    )

    assert [site.name for site in law.sites] == ["c", "a"]
    assert law.sites[0].up == stays(900.0, 8 * 3600.0)
    means_s = [law.sites[0].down.mean_s, law.sites[1].up.mean_s, law.sites[1].down.mean_s]
    assert means_s == pytest.approx([1800.0, 172_800.0, 90.0])
    assert (law.notice_s, law.correlation, law.daily_swing) == (30.0, 0.3, 0.0)
    assert law.sites[1].share_up == pytest.approx(172_800.0 / 172_890.0)


def test_a_trace_gives_the_law_that_is_fitted_to_its_stays(tmp_path):
    course = draw_course(three_sites(), 3, 4000, 195.0)
    counts = (course.up[:, 0] * 4).tolist()
    trace = {"metadata": {"gap_seconds": 195}, "data": counts}
    (tmp_path / "zone.json").write_text(json.dumps(trace), encoding="utf-8")

    site = read("{sites: {b: {trace: zone.json, least_servers: 4}}}", tmp_path).sites[0]

    up_s, down_s = course.stays(0, are_whole=False)
    assert (site.up, site.down) == (StayLaw.fitted(up_s), StayLaw.fitted(down_s))
    assert site.name == "b"


stay_laws = st.builds(
    StayLaw,
    weight=st.floats(0.0, 1.0),
    median_s=st.floats(1e-3, 1e9),
    sigma=st.floats(0.01, 4.0),
    other_median_s=st.floats(1e-3, 1e9),
    other_sigma=st.floats(0.01, 4.0),
)


@given(
    up=stay_laws,
    down=stay_laws,
    correlation=st.floats(0.0, 1.0),
    daily_swing=st.floats(0.0, 0.99),
    notice_s=st.floats(0.0, 1e5),
)
def test_any_law_reads_back_to_the_last_bit(up, down, **figures):
    law = SpotLaw(sites=(SiteLaw(name="b", up=up, down=down),), peak_h=5.5, **figures)
    topology = replace(WORLD, availability=law)

    assert from_yaml(to_yaml(topology)) == topology


def test_sites_without_a_law_are_always_up():
    law = three_sites().over(["x", "b", "y"])

    assert [site.name for site in law.sites] == ["x", "b", "y"]
    assert law.sites[1] == three_sites().sites[1]
    course = draw_course(law, 5, 3000, 300.0)
    assert course.up[:, [0, 2]].all()
    assert 0.0 < np.mean(course.up[:, 1]) < 1.0


@pytest.mark.parametrize(
    ("availability", "message"),
    [
        ("{sites: {d: {up: 1h, down: 1h}}}", "availability.sites: must be one of a, b, c; got 'd'"),
        ("{sites: {}}", "availability: spot law: sites must be at least one, each once"),
        ("{sites: {a: {up: 1h}}}", "availability.sites.a: must have up and down, or trace; got up"),
        ("{sites: {a: {}}}", "availability.sites.a: must have up and down, or trace; got none"),
        (
            "{sites: {a: {up: 1h, down: 1h, trace: zone.json}}}",
            "availability.sites.a: must have up and down, or trace; got up and down and trace",
        ),
        ("{sites: {a: {trace: none.json}}}", "availability.sites.a: .*none.json: cannot be read"),
        ("{sites: {a: {up: 0s, down: 1h}}}", "sites.a.up.*: mean_s must be positive.*got 0.0"),
        ("{sites: {a: {up: 3, down: 1h}}}", "sites.a.up.*got 3"),
        ("{sites: {a: {up: {weight: 2}, down: 1h}}}", "sites.a.up.*stays: median: must be given"),
        ("{sites: {a: {up: 1h, down: 1h}}, notice: soon}", "availability.notice.*'soon'"),
        (
            "{sites: {a: {up: 1h, down: 1h}}, correlation: 1.5}",
            "availability: spot law: correlation must be from 0 to 1, got 1.5",
        ),
        ("{sites: {a: {up: 1h, down: 1h}}, daily: 1}", "availability.daily: unknown key"),
    ],
)
def test_what_is_no_law_is_refused_by_its_field(availability, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read(availability, tmp_path)


def test_a_trace_of_few_stays_names_its_file(tmp_path):
    trace = {"metadata": {"gap_seconds": 60}, "data": [1, 1, 0]}
    (tmp_path / "short.json").write_text(json.dumps(trace), encoding="utf-8")

    with pytest.raises(ValueError, match=r"short\.json: stay law: lengths_s must be at least 4"):
        read("{sites: {a: {trace: short.json}}}", tmp_path)
