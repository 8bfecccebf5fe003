"""Memory layout of a batch of environments: one array per quantity, one row per environment.

These tuples are in the package of the kernels because compiled code knows their fields by
position: the cache of compiled code notices a change of this folder, and of no other.
N environments, K domains, L layers, E links, at most S stages.
"""

from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Real = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Observations = npt.NDArray[np.float32]

ZERO = cast(int, np.int64(0))
"""0 where a count begins that is handed on: a plain 0 has a type of its own, for which what it is
handed to would be compiled once more."""


class Runs(NamedTuple):
    """Placements as the stages that they form: consecutive layers of one domain each.

    ``num_stages`` (N,), each with its ``domain`` (N, S) and ``end_layer`` (N, S), the layer
    after its last one.
    """

    num_stages: Small
    domain: Small
    end_layer: Small


class Links(NamedTuple):
    """Links of all worlds of the batch, and what an observer sees of them.

    ``back`` (E,) is the opposite direction, -1 where there is none. The ``hops`` of the way from
    domain ``s`` to ``t`` begin at ``route_start[K * s + t]`` and end where the next one's begin; a
    domain has no way to itself. An observation's figures are divided by the scales,
    a simulation's multiplied by the factors of calibration.
    """

    back: Small
    route_start: Small
    hops: Small
    window_bytes: float
    bandwidth_fluctuation: float
    latency_jitter: float
    inner_bandwidth_bytes_per_s: Real
    inner_latency_s: Real
    bandwidth_scale: float
    latency_scale: float
    wan_bandwidth_factor: float
    wan_latency_factor: float


class Figures(NamedTuple):
    """Bandwidths and latencies of links, each (N, E), or (1, E) where all rows are equal."""

    bandwidth_bytes_per_s: Real
    latency_s: Real


class Course(NamedTuple):
    """Current state of every environment.

    ``number`` and ``epoch`` (N,) count episodes and epochs from 0, ``seed`` (N,) is that of the
    episode; ``start_s`` (N,) is the time of the course of the links at which the epoch begins.
    ``base`` are the links of the episode, ``now`` those that the epoch holds, ``last`` the last
    placements. The baseline is (N,).
    """

    number: Whole
    epoch: Whole
    seed: Whole
    start_s: Real
    base: Figures
    now: Figures
    last: Runs
    baseline_time_s: Real
    baseline_bytes: Real


class Work(NamedTuple):
    """Load of an iteration on the domains, and the figures it is compared with.

    ``sums_before`` (L + 1, 7): FLOPs of the passes F, B, D and W, then activations, weight inputs
    and parameters of all layers before one; ``num_parameters`` (L,) are those of each. Rates and
    capacities are (K,).
    """

    sums_before: Real
    num_parameters: Real
    rate_flops_per_s: Real
    capacity_bytes: Real
    bytes_per_parameter: float
    message_bytes: float
    flops_per_iteration: float
    tokens_per_iteration: float
    peak_flops_per_s: float
    epochs_per_episode: int
    num_iterations: int
    time_weight: float
    utilisation_weight: float
    communication_weight: float


class HeldMoments(NamedTuple):
    """Activations that stages hold at potential peaks, see `des.schedules.peaks_held`.

    Those of stage ``i`` of ``n`` are from ``start[first[n] + i]`` to that of the next; ``first``
    is -1 for numbers of stages that have not come up.
    """

    first: Whole
    start: Whole
    num_whole: Whole
    num_halved: Whole


class Tables(NamedTuple):
    """Tables of operations of placements of 1, 2, ... stages, see `des.compiled.operation_table`.

    Rows of ``n`` stages are from ``first_row[n]`` to that of the next; an iteration of them sends
    ``num_bytes[n]``.
    """

    rows: Small
    first_row: Whole
    num_bytes: Real


class Outcome(NamedTuple):
    """Figures of epochs, each (N,): the change of placement, then sums over the iterations.

    ``duration_s`` is the time of both; while iterations are simulated it is when the next begins.
    """

    migration_s: Real
    moved_bytes: Real
    duration_s: Real
    busy_s: Real
    num_bytes: Real


class Epochs(NamedTuple):
    """Epochs to simulate: placements, the links that they hold, iterations, and what comes out."""

    runs: Runs
    figures: Figures
    num_iterations: int
    work: Work
    links: Links
    outcome: Outcome


class RowGroups(NamedTuple):
    """Rows of a slice by how they are simulated.

    ``of_row`` and ``ordered`` are (rows,); the rows of group ``g`` are ``ordered`` from
    ``starts[g]`` to ``starts[g + 1]``.
    """

    of_row: Whole
    ordered: Whole
    starts: Whole


class Verdict(NamedTuple):
    """Results of a step besides observations; ``metrics`` (12, N) have the names below."""

    rewards: npt.NDArray[np.float32]
    truncated: Flags
    metrics: Real


METRICS = (
    "iteration_time_s",
    "utilisation",
    "communication_cost_bytes",
    "bubble_fraction",
    "tokens_per_s",
    "num_stages",
    "fits_memory",
    "memory_overflow_fraction",
    "migration_s",
    "moved_bytes",
    "baseline_iteration_time_s",
    "baseline_communication_cost_bytes",
)
"""Names of the rows of a verdict's metrics, as in `agents.flat.task.PlacementTask.metrics`."""

(
    ITERATION_TIME_S,
    UTILISATION,
    COMMUNICATION_COST_BYTES,
    BUBBLE_FRACTION,
    TOKENS_PER_S,
    NUM_STAGES,
    FITS_MEMORY,
    MEMORY_OVERFLOW_FRACTION,
    MIGRATION_S,
    MOVED_BYTES,
    BASELINE_ITERATION_TIME_S,
    BASELINE_COMMUNICATION_COST_BYTES,
) = range(len(METRICS))
"""Positions of these rows."""
