"""The shipped worlds that are made by a rule; the files in `des.worlds` are written from here.

Latencies follow the distance rule of `des.worlds.geography`: estimates, half a round trip each way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import permutations

from des.base.quantities import BANDWIDTH_BYTES_PER_S, TIME_S, scale_number
from des.dynamics import UniformLaw
from des.world.topology import Link, Topology
from des.worlds import EAST_CENTRAL_WEST
from des.worlds.geography import Position, aws_bandwidth_bytes_per_s, great_circle_km, round_trip_s
from des.worlds.reading import read_topology

EAST_WEST_HUBS_COMMENT = """\
East-West-Computing (Dong Shu Xi Suan): the ten data centre clusters of China's eight national
computing hubs. ESTIMATED, not measured: none were found for the hubs.

latency    half the round trip of 5.7 ms + 0.0171 ms/km over the great circle between the cities, a
           fit to cloud regions (des/worlds/geography.py), to 0.1 ms. The national plan asks for
           20 ms between hubs by the end of 2025 and does not say whether one way or both.
bandwidth  assumed: 5 Gbit/s, less 1.5 Gbit/s per 1000 km, to 0.1 Gbit/s.
dynamics   those of East-Central-West: a stress case, cloud backbones are steadier.
domains    GPUs of East-Central-West; what the clusters have was not found in such terms.
prices     none were found; add price_usd_per_gb and gpu_price_usd_per_hour of your own.

hub                     cluster (domain)
Beijing-Tianjin-Hebei   Zhangjiakou
Yangtze River Delta     YangtzeDelta (demonstration zone, at Qingpu), Wuhu
Greater Bay Area        Shaoguan
Chengdu-Chongqing       Tianfu (at Chengdu), Chongqing
Guizhou                 Guian
Inner Mongolia          Horinger
Gansu                   Qingyang
Ningxia                 Zhongwei

Written by: python -m scenarios.make_topology --preset east_west_hubs --out east_west_hubs.yaml"""

AWS_LIKE_COMMENT = """\
Six regions like those of AWS. ESTIMATED by fits to measurements between regions
(des/worlds/geography.py), not measured between these.

latency    half the round trip of the distance rule over the great circle, to 0.1 ms. The rule
           is for the median route: a tenth of the measured ones take less than 0.8 times that,
           a tenth more than 1.4 times.
bandwidth  4.905 - 0.00885 x round trip in ms, in Gbit/s, to 0.01: many TCP flows of one virtual
           machine. AWS lets 5 Gbit/s out of one in all; that its links share this is not
           modelled, so send to one region at a time or take one machine for each.
dynamics   uniform within 3.5 %, a standard deviation of 2 %, as between equal pairs ten months
           apart; latency 2.5 %, the 99th percentile of measured jitter.
prices     links: list price of the sending region for traffic to other regions, as tabled by
           Skyplane (profiles/aws_transfer_costs.csv); GPUs, in all regions: an eighth of a
           p4d.24xlarge on demand in US East in 2024, USD 32.77 an hour. Prices change.
domains    GPUs of East-Central-West.

Written by: python -m scenarios.make_topology --preset aws_like --out aws_like.yaml"""

EAST_WEST_CLUSTERS: Mapping[str, Position] = {
    name: Position(latitude_deg=north, longitude_deg=east)
    for name, north, east in (
        ("Zhangjiakou", 40.82, 114.88),
        ("YangtzeDelta", 31.15, 121.11),
        ("Wuhu", 31.33, 118.38),
        ("Shaoguan", 24.81, 113.60),
        ("Tianfu", 30.66, 104.07),
        ("Chongqing", 29.56, 106.55),
        ("Guian", 26.40, 106.47),
        ("Horinger", 40.38, 111.82),
        ("Qingyang", 35.73, 107.64),
        ("Zhongwei", 37.50, 105.20),
    )
}
"""Locations of the clusters: the public coordinates of their cities and counties."""

AWS_REGIONS: Mapping[str, tuple[Position, float]] = {
    name: (Position(latitude_deg=north, longitude_deg=east), price_usd_per_gb)
    for name, north, east, price_usd_per_gb in (
        ("Virginia", 39.04, -77.49, 0.02),
        ("Oregon", 45.84, -119.70, 0.02),
        ("Ireland", 53.35, -6.26, 0.02),
        ("Frankfurt", 50.11, 8.68, 0.02),
        ("Tokyo", 35.68, 139.69, 0.09),
        ("Singapore", 1.35, 103.82, 0.09),
    )
}
"""Locations of the regions, and the price of a GB that leaves them for another region."""

AWS_GPU_PRICE_USD_PER_HOUR = 4.1
"""An eighth of a p4d.24xlarge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A world and what its file says about it."""

    comment: str
    topology: Topology


def east_west_hubs() -> Preset:
    """Ten clusters of the East-West-Computing plan, every two joined directly."""
    model = read_topology(EAST_CENTRAL_WEST)
    links = []
    for source, target in permutations(EAST_WEST_CLUSTERS, 2):
        distance_km = great_circle_km(EAST_WEST_CLUSTERS[source], EAST_WEST_CLUSTERS[target])
        gbit_per_s = 5.0 - 1.5 * distance_km / 1000
        links.append(_estimate_link(source, target, distance_km, round(gbit_per_s, 1)))
    domains = [replace(model.domains[0], name=name) for name in EAST_WEST_CLUSTERS]
    topology = Topology.of(domains, links, model.dynamics)
    return Preset(comment=EAST_WEST_HUBS_COMMENT, topology=topology)


def aws_like() -> Preset:
    """Six regions over three continents, every two joined directly, with prices."""
    (model, *_) = read_topology(EAST_CENTRAL_WEST).domains
    links = []
    for source, target in permutations(AWS_REGIONS, 2):
        (here, price_usd_per_gb), (there, _) = AWS_REGIONS[source], AWS_REGIONS[target]
        distance_km = great_circle_km(here, there)
        gbit_per_s = aws_bandwidth_bytes_per_s(round_trip_s(distance_km)) * 8 / 1e9
        link = _estimate_link(source, target, distance_km, round(gbit_per_s, 2))
        links.append(replace(link, price_usd_per_gb=price_usd_per_gb))
    domains = [
        replace(model, name=name, gpu_price_usd_per_hour=AWS_GPU_PRICE_USD_PER_HOUR)
        for name in AWS_REGIONS
    ]
    calm = UniformLaw(bandwidth_fluctuation=0.035, latency_jitter=0.025)
    return Preset(comment=AWS_LIKE_COMMENT, topology=Topology.of(domains, links, calm))


PRESETS: Mapping[str, Callable[[], Preset]] = {
    "aws_like": aws_like,
    "east_west_hubs": east_west_hubs,
}
"""Presets by the name of their world."""


def _estimate_link(source: str, target: str, distance_km: float, gbit_per_s: float) -> Link:
    latency_ms = round(round_trip_s(distance_km) / 2 * 1e3, 1)
    return Link(
        source=source,
        target=target,
        bandwidth_bytes_per_s=scale_number(gbit_per_s, "Gbps", BANDWIDTH_BYTES_PER_S),
        latency_s=scale_number(latency_ms, "ms", TIME_S),
    )
