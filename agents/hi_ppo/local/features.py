"""Features of the local policy: of the case, and of every option that fits.

Nothing depends on the numbers of the GPUs: their network shows as the rings that its best disjoint
groups have, that between servers as their cards and how these are shared by groups of fast rings.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from agents.devices.binding_bounds import BestGroups, estimates
from agents.devices.binding_times import ServerGpus
from agents.hi_ppo.local.bound_plans import server_gpus_of, works_of
from agents.hi_ppo.local.case import LocalCase
from agents.hi_ppo.local.options import Options
from des.costs.stage_times import compute_rate_flops_per_s
from des.devices.gpus import GROUP_SIZES

_GROUPS = ((2, 1), (2, 2), (2, 3), (2, 4), (4, 1), (4, 2), (8, 1))
"""Size and number of disjoint groups."""

CONTEXT_FEATURES = (
    "free_gpus",
    "layers",
    "layer_share",
    "sequences",
    "stages_before",
    "stages_behind",
    "warm_up_factor",
    "memory_room",
    "memory_occupancy",
    "utilisation",
    "compute_rate",
    "least_compute",
    "least_memory_fraction",
    *(f"ring_bandwidth_{count}x{size}" for size, count in _GROUPS),
    *(f"communication_ratio_{count}x{size}" for size, count in _GROUPS),
    "servers",
    "cards_per_gpu",
    "card_bandwidth",
    "card_latency",
    "card_share_of_pairs",
    "card_share_of_fours",
    "crossing_ratio",
)
"""Entries of a context, in this order."""

OPTION_FEATURES = (
    "tensor",
    "data",
    "pipeline",
    "microbatch_size",
    "is_full",
    "is_sharded",
    "idle_gpus",
    "crossings",
    "memory_fraction",
    "compute_excess",
    "tensor_share",
    "hop_share",
    "crossing_share",
    "gradient_share",
    "fill_share",
    "excess",
    "small_excess",
)
"""Entries of an option, in this order; excesses and shares are those of an estimate."""

OF_ESTIMATE = (
    "tensor_share",
    "hop_share",
    "crossing_share",
    "gradient_share",
    "fill_share",
    "excess",
    "small_excess",
)

WITHOUT_ESTIMATE = tuple(name for name in OPTION_FEATURES if name not in OF_ESTIMATE)
"""Features of a policy that has to learn how shapes and wires make times."""

_BYTES, _FLOPS, _LATENCY_S = 1e9, 1e12, 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A case as the policy sees it: ``context`` (C,) and ``options`` (N, O), both float32.

    ``estimate_s`` (N,) is that of `agents.devices.binding_bounds`. [s]
    """

    context: np.ndarray
    options: np.ndarray
    estimate_s: np.ndarray


def observe(case: LocalCase, options: Options) -> Observation:
    """Look at a case and the options that fit."""
    gpus, rows = server_gpus_of(case), options.rows
    bandwidths, latencies_s = case.gpus.best_groups
    factors = case.corrections
    groups = BestGroups(
        bandwidths * factors.intra_bandwidth_factor, latencies_s * factors.intra_latency_factor
    )
    parts = estimates(works_of(case, options), gpus, groups)
    total_s, compute_s, tensor_s, hop_s, crossing_s, gradient_s, slowest_s = parts.T
    excess = np.log(total_s / total_s.min())
    size, used = rows.tensor * rows.data, rows.tensor * rows.data * rows.pipeline
    parts_used = np.where(size < gpus.per_server, -(-used // gpus.per_server), rows.pipeline)
    columns = (
        np.log2(rows.tensor),
        np.log2(rows.data),
        np.log2(rows.pipeline),
        np.log2(rows.microbatch_size),
        rows.is_full,
        rows.is_sharded,
        1.0 - used / len(case.free_gpus),
        np.log2(parts_used),
        options.memory_fraction,
        np.log(compute_s / compute_s.min()),
        tensor_s / total_s,
        hop_s / total_s,
        crossing_s / total_s,
        gradient_s / total_s,
        1.0 - options.num_microbatches * slowest_s / total_s,
        np.minimum(excess, 3.0),
        np.exp(-excess / 0.02),  # tells apart what differs by a few percent
    )
    return Observation(
        context=_context(case, options, gpus, groups, float(compute_s.min())).astype(np.float32),
        options=np.column_stack(columns).astype(np.float32),
        estimate_s=np.ascontiguousarray(total_s),
    )


def _context(
    case: LocalCase,
    options: Options,
    gpus: ServerGpus,
    best: BestGroups,
    least_compute_s: float,
) -> np.ndarray:
    rate = compute_rate_flops_per_s(case.domain, case.corrections) / case.domain.num_gpus
    bandwidths = best.bytes_per_s
    groups = [
        bandwidths[GROUP_SIZES.index(size), count] if count < bandwidths.shape[1] else np.nan
        for size, count in _GROUPS
    ]
    found = np.array(groups)
    found[np.isnan(found)] = _BYTES  # a network that slow has as little to offer as none
    single = case.job.workload(1, "flash")
    layer_s = sum(single.forward_flops) / single.num_layers / rate
    numbers = (
        len(case.gpus.free),
        np.log(case.num_layers),
        case.num_layers / case.job.layer_count,
        np.log(case.job.num_sequences),
        case.stages_before,
        case.stages_behind,
        1.0 / (1.0 + case.warm_up_factor),
        np.log(case.room_bytes / _BYTES),
        case.load.memory_occupancy,
        case.load.utilisation,
        np.log(rate / _FLOPS),
        np.log(least_compute_s),
        options.memory_fraction.min(),
    )
    ratios = single.message_bytes / found / layer_s
    outside = _outside(case, gpus, single.message_bytes / layer_s)
    return np.concatenate((numbers, np.log(found / _BYTES), np.log(ratios), outside))


def _outside(case: LocalCase, gpus: ServerGpus, bytes_per_s: float) -> tuple[float, ...]:
    """Features of the ways between servers; what they would have to carry for a layer a message."""
    if case.num_servers == 1:
        return 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0
    shares = [_card_share(gpus, size) for size in (2, 4)]
    return (
        np.log2(case.num_servers),
        gpus.num_cards / gpus.per_server,
        np.log(gpus.card_bytes_per_s / _BYTES),
        gpus.card_latency_s / _LATENCY_S,
        *shares,
        np.log(bytes_per_s / gpus.card_bytes_per_s),
    )


def _card_share(gpus: ServerGpus, size: int) -> float:
    """Best share of cards that a group of a size with the fastest ring has; 1 without any."""
    if size > gpus.per_server:
        return 1.0
    rings = gpus.wires.ring_bandwidth_bytes_per_s
    of_size = _sets_of(gpus.per_server, size)
    fastest = of_size[rings[of_size] == rings[of_size].max()]
    return float(gpus.card_shares[fastest].max())


@lru_cache(maxsize=32)
def _sets_of(num_gpus: int, size: int) -> np.ndarray:
    return np.array([each for each in range(1 << num_gpus) if each.bit_count() == size])
