"""Shipped worlds that are made by a rule: the files are what the rule gives."""

from itertools import combinations

import pytest

from des import read_topology
from des.world.files.topology_writer import to_yaml
from des.worlds import WORLDS
from des.worlds.geography import great_circle_km
from des.worlds.presets import AWS_REGIONS, EAST_WEST_CLUSTERS, PRESETS

GBIT_PER_S = 1e9 / 8


@pytest.mark.parametrize("name", PRESETS)
def test_the_shipped_file_is_what_the_preset_writes(name):
    """Regenerate with ``python -m scenarios.make_topology --preset NAME --out des/worlds/...``."""
    preset = PRESETS[name]()

    shipped = WORLDS[name].read_text(encoding="utf-8")
    assert shipped == to_yaml(preset.topology, comment=preset.comment)
    assert read_topology(name) == preset.topology


@pytest.mark.parametrize("name", PRESETS)
def test_the_file_says_that_it_is_estimated_and_how_to_make_it(name):
    shipped = WORLDS[name].read_text(encoding="utf-8")

    assert "ESTIMATED" in shipped
    assert f"# Written by: python -m scenarios.make_topology --preset {name} --out " in shipped


@pytest.mark.parametrize("name", WORLDS)
def test_every_shipped_world_can_be_read_and_reaches_all_its_domains(name):
    topology = read_topology(name)

    for one, other in combinations(range(topology.num_domains), 2):
        assert topology.route(one, other)
        assert topology.route(other, one)


def test_the_ten_clusters_of_the_plan_are_all_joined():
    topology = read_topology("east_west_hubs")

    assert set(topology.index_of) == {
        *("Zhangjiakou", "YangtzeDelta", "Wuhu", "Shaoguan", "Tianfu"),
        *("Chongqing", "Guian", "Horinger", "Qingyang", "Zhongwei"),
    }
    assert len(topology.links) == 90


def test_hub_links_follow_the_stated_rules():
    """Half of 5.7 + 0.0171 km, to 0.1 ms; 5 - 1.5 per 1000 km, to 0.1 Gbit/s, so from 2 to 5."""
    topology = read_topology("east_west_hubs")

    for link in topology.links:
        km = great_circle_km(EAST_WEST_CLUSTERS[link.source], EAST_WEST_CLUSTERS[link.target])
        assert link.latency_s * 1e3 == pytest.approx((5.7 + 0.0171 * km) / 2, abs=0.0501)
        gbit_per_s = link.bandwidth_bytes_per_s / GBIT_PER_S
        assert gbit_per_s == pytest.approx(5 - 1.5 * km / 1000, abs=0.0501)
        assert 2 <= gbit_per_s <= 5
        assert link.price_usd_per_gb is None


@pytest.mark.parametrize(
    ("one", "other", "km"),
    [
        ("Tianfu", "Chongqing", 270),
        ("Zhangjiakou", "Shaoguan", 1785),
        ("Zhongwei", "YangtzeDelta", 1620),
        ("Horinger", "Zhangjiakou", 265),
    ],
)
def test_clusters_are_where_a_map_has_them(one, other, km):
    """Distances by the positions of the cities, against later edits; to 2 %."""
    assert great_circle_km(EAST_WEST_CLUSTERS[one], EAST_WEST_CLUSTERS[other]) == pytest.approx(
        km, rel=0.02
    )


def test_aws_links_follow_the_fits_and_the_sender_pays():
    topology = read_topology("aws_like")

    assert len(topology.links) == 30
    for link in topology.links:
        (here, price), (there, _) = AWS_REGIONS[link.source], AWS_REGIONS[link.target]
        km = great_circle_km(here, there)
        round_trip_ms = 5.7 + 0.0171 * km if km < 5000 else 0.0173 * km
        assert link.latency_s * 1e3 == pytest.approx(round_trip_ms / 2, abs=0.0501)
        gbit_per_s = link.bandwidth_bytes_per_s / GBIT_PER_S
        assert gbit_per_s == pytest.approx(4.905 - 0.00885 * round_trip_ms, abs=0.00501)
        assert link.price_usd_per_gb == price
    assert topology.link_between(0, 4).price_usd_per_gb == 0.02  # Virginia to Tokyo
    assert topology.link_between(4, 0).price_usd_per_gb == 0.09


@pytest.mark.parametrize(
    ("one", "other", "measured_ms"),
    [("Virginia", "Oregon", 67), ("Oregon", "Ireland", 124), ("Oregon", "Singapore", 163)],
)
def test_aws_round_trips_are_near_measured_ones(one, other, measured_ms):
    """Measured in 2022; the estimate is within the stretch of nine pairs in ten."""
    topology = read_topology("aws_like")
    link = topology.link_between(topology.index_of[one], topology.index_of[other])

    assert 2e3 * link.latency_s == pytest.approx(measured_ms, rel=0.43)
