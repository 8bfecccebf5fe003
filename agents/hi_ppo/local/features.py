"""Features of the local policy: of the case, and of every option that fits.

Nothing depends on the numbers of the GPUs: their network shows as the rings that its best disjoint
groups have.
"""

from dataclasses import dataclass

import numpy as np

from agents.hi_ppo.local.bound_plans import wires_of
from agents.hi_ppo.local.case import LocalCase
from agents.hi_ppo.local.options import Options, tensor_steps
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
    "memory_fraction",
    "compute_excess",
    "tensor_share",
    "hop_share",
    "gradient_share",
    "fill_share",
    "excess",
    "small_excess",
)
"""Entries of an option, in this order; excesses and shares are those of an estimate."""

OF_ESTIMATE = (
    "tensor_share",
    "hop_share",
    "gradient_share",
    "fill_share",
    "excess",
    "small_excess",
)

WITHOUT_ESTIMATE = tuple(name for name in OPTION_FEATURES if name not in OF_ESTIMATE)
"""Features of a policy that has to learn how shapes and wires make times."""

_BYTES, _FLOPS = 1e9, 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A case as the policy sees it: ``context`` (C,) and ``options`` (N, O), both float32.

    ``estimate_s`` (N,) is the time of an iteration if all groups of an option could have the best
    rings at once, and its hops the best pair. [s]
    """

    context: np.ndarray
    options: np.ndarray
    estimate_s: np.ndarray


def observe(case: LocalCase, options: Options) -> Observation:
    """Look at a case and the options that fit."""
    estimate_s, parts = _estimate(case, options)
    rows, num_free = options.rows, len(case.gpus.free)
    compute_s, tensor_s, hop_s, gradient_s, fill_s = parts
    excess = np.log(estimate_s / estimate_s.min())
    used = rows.tensor * rows.data * rows.pipeline
    columns = (
        np.log2(rows.tensor),
        np.log2(rows.data),
        rows.pipeline,
        np.log2(rows.microbatch_size),
        rows.is_full,
        rows.is_sharded,
        1.0 - used / num_free,
        options.memory_fraction,
        np.log(compute_s / compute_s.min()),
        tensor_s / estimate_s,
        hop_s / estimate_s,
        gradient_s / estimate_s,
        fill_s / estimate_s,
        np.minimum(excess, 3.0),
        np.exp(-excess / 0.02),  # tells apart what differs by a few percent
    )
    return Observation(
        context=_context(case, options, float(compute_s.min())).astype(np.float32),
        options=np.column_stack(columns).astype(np.float32),
        estimate_s=estimate_s,
    )


def _estimate(case: LocalCase, options: Options) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Time of an iteration with the best groups (N,), and its parts: those of
    `agents.hi_ppo.local.times`.

    The parts are what remains of the whole with free links, then what rings of tensor groups, hops,
    sums of gradients and the filling of the pipeline add to it or take of it.
    """
    rows, wires = options.rows, wires_of(case)
    tensor_step_s = _step_s(
        case, rows.tensor, rows.data * rows.pipeline, options.message_bytes / rows.tensor
    )
    data_bytes = options.gradient_bytes.max(axis=1) / rows.data
    gradient_s = (
        2 * (rows.data - 1) * _step_s(case, rows.data, rows.tensor * rows.pipeline, data_bytes)
    )
    free = np.array(case.gpus.free)
    among = wires.bandwidth_bytes_per_s[np.ix_(free, free)][~np.eye(len(free), dtype=bool)]
    wire_s = options.message_bytes / among.max(initial=1e-300)
    wire_s = np.where(rows.pipeline > 1, wire_s, 0.0)
    hop_s = 2.0 * (rows.pipeline - 1) * wire_s
    fill = options.num_microbatches - 1 + case.stages_before + case.stages_behind
    exchange_s = tensor_steps(options) * tensor_step_s[:, None]
    device_s = options.compute_s + exchange_s
    slowest_s = np.maximum(device_s.max(axis=1), wire_s)
    compute_s = fill * options.compute_s.max(axis=1) + options.compute_s.sum(axis=1)
    total_s = fill * slowest_s + device_s.sum(axis=1) + hop_s + gradient_s
    tensor_s = fill * exchange_s.max(axis=1) + exchange_s.sum(axis=1)
    fill_s = total_s - options.num_microbatches * slowest_s
    return total_s, (compute_s, tensor_s, hop_s, gradient_s, fill_s)


def _step_s(
    case: LocalCase, sizes: np.ndarray, counts: np.ndarray, num_bytes: np.ndarray
) -> np.ndarray:
    """One step of the slowest of ``counts`` disjoint rings of a size, the best there are (N,)."""
    bandwidths, latencies_s = case.gpus.best_groups
    rows = np.searchsorted(GROUP_SIZES, sizes)
    bandwidth = bandwidths[rows, counts] * case.corrections.intra_bandwidth_factor
    latency_s = latencies_s[rows, counts] * case.corrections.intra_latency_factor
    return np.asarray(latency_s + num_bytes / bandwidth)


def _context(case: LocalCase, options: Options, least_compute_s: float) -> np.ndarray:
    rate = compute_rate_flops_per_s(case.domain, case.corrections) / case.domain.num_gpus
    bandwidths = case.gpus.best_groups[0] * case.corrections.intra_bandwidth_factor
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
    return np.concatenate((numbers, np.log(found / _BYTES), np.log(ratios)))
