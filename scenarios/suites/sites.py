"""Worlds of real sites: data centres of GPUs on the market, links by distance, jobs by tokens."""

import math
from dataclasses import replace
from functools import lru_cache
from itertools import combinations

import numpy as np

from des import Domain, Link, Topology, Workload, build_workload
from des.devices.gpu_kinds import GPU_KINDS
from des.world.kernel_figures import FITTED_KERNELS
from des.worlds.geography import Position, great_circle_km, round_trip_s
from scenarios.suites.recipe import Cell, WorldDraw

LEAST_LINK_BYTES_PER_S, MOST_LINK_BYTES_PER_S = 0.1e9 / 8, 400e9 / 8
"""Range of the bandwidth of every link."""

SITE_GPU_KINDS = ("h100", "h200", "a100_80", "mi300x")
"""GPUs of sites, among `des.devices.gpu_kinds.GPU_KINDS`."""

INTRA_BYTES_PER_S = {"h100": 450e9, "h200": 450e9, "a100_80": 300e9, "mi300x": 448e9}
"""Bandwidth of a GPU inside a server, one way: NVLink 4 and 3, and seven Infinity Fabric links."""

SITE_GPUS = (8, 16, 32, 64, 128, 256, 512, 1024)
"""Numbers of GPUs of a site."""

MOST_SIZE_STEPS = 2
"""Unequal sites have up to four times the GPUs of the middle one, and down to a quarter."""

ATTAINED_SHARE = 0.8
"""Share of the speed by shapes that a job has; a load of up to 1.2 times it stays below 1."""

SITE_MODELS = (
    "llama2_7b",
    "llama2_13b",
    "qwen3_32b",
    "llama2_70b",
    "gpt3_175b",
    "llama3_405b",
    "qwen3_30b_a3b",
    "mixtral_8x7b",
    "mixtral_8x22b",
    "qwen3_235b_a22b",
    "deepseek_v2",
    "deepseek_v3",
)
"""Six dense models of 7 to 405 billion parameters, and six with experts."""

SEQUENCE_LENGTH = 4096
LEAST_SEQUENCES, MOST_SEQUENCES = 24, 4096
"""Sequences of a step, 0.1 to 16.8 million tokens; multiples of 8, so that 1, 2, 4, 8 divide."""

MOST_MICROBATCHES = 512
"""Bound of the microbatches of a step; the least size of one that keeps to it is taken."""

MOST_SITE_TRIES = 131_072
"""Bound of the draws for one place: few of 64 sites have links in range at low ratios,
about one in 50,000."""

REGIONS = {
    "North America": ((30.0, 48.0), (-123.0, -74.0)),
    "Europe": ((38.0, 61.0), (-8.0, 25.0)),
    "East Asia": ((1.0, 40.0), (103.0, 141.0)),
}
"""Latitudes and longitudes between which sites of a region are. [degrees]"""

NEAR_FACTORS = (1.0, 2.0, 4.0)
"""Factors on the bandwidth of links inside a region."""

LINK_LOG_DEVIATION = 0.5
"""Standard deviation of the logarithm of a bandwidth, as `PlaneWorlds` has it."""

_PARTS = 3
"""Links differ by up to this many standard deviations."""


def site_world(cell: Cell, ratio: float, rng: np.random.Generator) -> WorldDraw | None:
    """Draw the sites and the job of a cell; None where their figures cannot have the ratio.

    Half of the worlds have equal sites, in the others both GPUs and their numbers differ. Sites
    are in one to three regions; half the round trip of `des.worlds.geography` over the distance is
    the latency. The mean bandwidth follows from the ratio. Layers take times by their shapes.
    """
    domains = _sites(rng, cell.num_domains)
    model = SITE_MODELS[int(rng.integers(len(SITE_MODELS)))]
    workload = _job(rng, model)
    forward_s = sum(workload.forward_flops) / cell.num_domains
    forward_s *= float(np.mean([1.0 / domain.attainable_flops_per_s for domain in domains]))
    mean_bytes_per_s = workload.message_bytes / (ratio * forward_s)
    if not LEAST_LINK_BYTES_PER_S <= mean_bytes_per_s <= MOST_LINK_BYTES_PER_S:
        return None
    links = _links(rng, cell.num_domains, mean_bytes_per_s)
    if links is None:
        return None
    return WorldDraw(topology=Topology.of(domains, links), workload=workload)


@lru_cache(maxsize=64)
def least_site_ratio(num_domains: int) -> float:
    """Return the least transfer/compute ratio of a number of sites at which links stay in range.

    That of the job that sends least for its work, on the smallest sites of the slowest GPUs, with
    all links inside one region. The quickest of many links is `_PARTS` standard deviations above.
    """
    quickest = math.exp(LINK_LOG_DEVIATION * _PARTS - LINK_LOG_DEVIATION**2 / 2.0)
    slowest = min(_site(0, kind, SITE_GPUS[0]).attainable_flops_per_s for kind in SITE_GPU_KINDS)
    jobs = [_workload(model, LEAST_SEQUENCES, 1) for model in SITE_MODELS]
    bytes_per_flop = min(job.message_bytes / sum(job.forward_flops) for job in jobs)
    return bytes_per_flop * slowest * num_domains * quickest / MOST_LINK_BYTES_PER_S


def _sites(rng: np.random.Generator, count: int) -> list[Domain]:
    """Equal sites, or sites of their own kinds and sizes about a middle one."""
    kinds, middle = rng.integers(len(SITE_GPU_KINDS), size=count), int(rng.integers(len(SITE_GPUS)))
    steps = rng.integers(-MOST_SIZE_STEPS, MOST_SIZE_STEPS + 1, size=count)
    if rng.random() < 0.5:
        kinds[:], steps[:] = kinds[0], 0
    sizes = np.clip(middle + steps, 0, len(SITE_GPUS) - 1)
    return [
        _site(index, SITE_GPU_KINDS[kind], SITE_GPUS[size])
        for index, (kind, size) in enumerate(zip(kinds.tolist(), sizes.tolist(), strict=True))
    ]


@lru_cache(maxsize=64 * len(SITE_GPU_KINDS) * len(SITE_GPUS))
def _site(index: int, kind: str, num_gpus: int) -> Domain:
    gpu = GPU_KINDS[kind]
    return Domain(
        name=f"site{index}",
        num_gpus=num_gpus,
        gpu_peak_flops_per_s=gpu.peak_flops_per_s,
        gpu_memory_bytes=gpu.memory_bytes,
        gpu_memory_bandwidth_bytes_per_s=gpu.memory_bandwidth_bytes_per_s,
        attainable_fraction=ATTAINED_SHARE,
        intra_bandwidth_bytes_per_s=INTRA_BYTES_PER_S[kind],
        intra_latency_s=2e-6,
        kernels=FITTED_KERNELS,
    )


def _job(rng: np.random.Generator, model: str) -> Workload:
    """Tokens a step, log-uniform, in microbatches of the least size that makes few of them."""
    drawn = LEAST_SEQUENCES * (MOST_SEQUENCES / LEAST_SEQUENCES) ** float(rng.random())
    num_sequences = 8 * max(1, round(drawn / 8))
    size = next(size for size in (1, 2, 4, 8) if num_sequences <= size * MOST_MICROBATCHES)
    return _workload(model, num_sequences // size, size)


@lru_cache(maxsize=1024)
def _workload(model: str, num_microbatches: int, microbatch_size: int) -> Workload:
    return replace(_microbatch(model, microbatch_size), num_microbatches=num_microbatches)


@lru_cache(maxsize=64)
def _microbatch(model: str, microbatch_size: int) -> Workload:
    """One microbatch: jobs of any number of them have the same layers."""
    return build_workload(
        model,
        num_microbatches=1,
        microbatch_size=microbatch_size,
        sequence_length=SEQUENCE_LENGTH,
    )


def _links(rng: np.random.Generator, count: int, mean_bytes_per_s: float) -> list[Link] | None:
    """Links each way between every two sites; None where one would be out of range."""
    regions = rng.permutation(list(REGIONS))[: int(rng.integers(1, len(REGIONS) + 1))]
    region_of = rng.integers(len(regions), size=count)
    places = [_place(rng, str(regions[region])) for region in region_of]
    near_factor = float(rng.choice(NEAR_FACTORS))
    one, other = np.triu_indices(count, k=1)  # the order of `combinations`
    parts = np.exp(
        LINK_LOG_DEVIATION * np.clip(rng.standard_normal(len(one)), -_PARTS, _PARTS)
    ) * np.where(region_of[one] == region_of[other], near_factor, 1.0)
    bandwidths = mean_bytes_per_s * parts / parts.mean()
    if bandwidths.min() < LEAST_LINK_BYTES_PER_S or bandwidths.max() > MOST_LINK_BYTES_PER_S:
        return None
    links = []
    for pair, bandwidth in zip(combinations(range(count), 2), bandwidths.tolist(), strict=True):
        distance_km = great_circle_km(places[pair[0]], places[pair[1]])
        link = Link(
            source=f"site{pair[0]}",
            target=f"site{pair[1]}",
            bandwidth_bytes_per_s=bandwidth,
            latency_s=round_trip_s(distance_km) / 2.0,
        )
        links += [link, replace(link, source=link.target, target=link.source)]
    return links


def _place(rng: np.random.Generator, region: str) -> Position:
    latitudes, longitudes = REGIONS[region]
    return Position(
        latitude_deg=float(rng.uniform(*latitudes)), longitude_deg=float(rng.uniform(*longitudes))
    )
