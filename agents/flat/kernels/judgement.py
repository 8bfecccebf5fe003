"""Memory, metrics and rewards of epochs; the twin of `agents.flat.task` and `des.costs.memory`."""

import numpy as np

from des.base.jit import kernel
from des.compiled.many.activations import PARAMETERS, peak_held_bytes
from des.compiled.many.layout import (
    BASELINE_COMMUNICATION_COST_BYTES,
    BASELINE_ITERATION_TIME_S,
    BUBBLE_FRACTION,
    COMMUNICATION_COST_BYTES,
    FITS_MEMORY,
    ITERATION_TIME_S,
    MEMORY_OVERFLOW_FRACTION,
    MIGRATION_S,
    MOVED_BYTES,
    NUM_STAGES,
    TOKENS_PER_S,
    UTILISATION,
    Course,
    HeldMoments,
    Outcome,
    Real,
    Runs,
    Verdict,
    Whole,
    Work,
)


@kernel
def judge_epochs(
    course: Course,
    runs: Runs,
    work: Work,
    moments: HeldMoments,
    outcome: Outcome,
    rows: Whole,
    verdict: Verdict,
) -> None:
    """Write the verdicts on the epochs of some environments."""
    weigh(runs, work, moments, rows, verdict.metrics)
    measure_epochs(course, work, outcome, rows, verdict.metrics)
    metrics, rewards, truncated = verdict.metrics, verdict.rewards, verdict.truncated
    epochs = course.epoch
    for row in rows:
        base_s = metrics[BASELINE_ITERATION_TIME_S, row]
        base_bytes = metrics[BASELINE_COMMUNICATION_COST_BYTES, row]
        num_bytes = metrics[COMMUNICATION_COST_BYTES, row]
        fits = metrics[FITS_MEMORY, row] != 0.0
        rewards[row] = (
            work.time_weight * (base_s - metrics[ITERATION_TIME_S, row]) / base_s
            + work.utilisation_weight * metrics[UTILISATION, row]
            - work.communication_weight * (num_bytes / base_bytes if base_bytes != 0.0 else 0.0)
            - (0.0 if fits else 1.0 + metrics[MEMORY_OVERFLOW_FRACTION, row])
        )
        truncated[row] = epochs[row] + 1 >= work.epochs_per_episode


@kernel
def weigh(runs: Runs, work: Work, moments: HeldMoments, rows: Whole, metrics: Real) -> None:
    """Find out what memory placements need; notes devices in use in place of the bubble."""
    stage_count, domains, end_layers = runs
    sums_before, capacity_bytes = work.sums_before, work.capacity_bytes
    first_moment = moments.first
    num_domains = capacity_bytes.size
    parameters, held_bytes = np.empty(num_domains), np.empty(num_domains)
    for row in rows:
        parameters[:] = -1.0
        held_bytes[:] = 0.0
        begin, num_used = 0, 0
        first = first_moment[stage_count[row]]
        for stage in range(stage_count[row]):
            domain, end = domains[row, stage], end_layers[row, stage]
            if parameters[domain] < 0.0:
                parameters[domain] = 0.0
                num_used += 1
            parameters[domain] += sums_before[end, PARAMETERS] - sums_before[begin, PARAMETERS]
            held_bytes[domain] += peak_held_bytes(sums_before, moments, first + stage, begin, end)
            begin = end
        overflow, fits = 0.0, True
        for domain in range(num_domains):
            state_bytes = work.bytes_per_parameter * max(parameters[domain], 0.0)
            needed, capacity = state_bytes + held_bytes[domain], capacity_bytes[domain]
            if needed > capacity:
                fits = False
                overflow = max(overflow, needed / capacity - 1.0)
        metrics[NUM_STAGES, row] = stage_count[row]
        metrics[FITS_MEMORY, row] = fits
        metrics[MEMORY_OVERFLOW_FRACTION, row] = overflow
        metrics[BUBBLE_FRACTION, row] = num_used


@kernel
def measure_epochs(
    course: Course, work: Work, outcome: Outcome, rows: Whole, metrics: Real
) -> None:
    """Turn sums over epochs into means per iteration that bear the change of placement."""
    durations_s, busy_s = outcome.duration_s, outcome.busy_s
    num_bytes, moved_bytes = outcome.num_bytes, outcome.moved_bytes
    migrations_s = outcome.migration_s
    base_s, base_bytes = course.baseline_time_s, course.baseline_bytes
    num_iterations = work.num_iterations
    num_flops = num_iterations * work.flops_per_iteration
    num_tokens = num_iterations * work.tokens_per_iteration
    for row in rows:
        duration_s, num_used = durations_s[row], metrics[BUBBLE_FRACTION, row]
        metrics[ITERATION_TIME_S, row] = duration_s / num_iterations
        metrics[UTILISATION, row] = num_flops / (work.peak_flops_per_s * duration_s)
        metrics[COMMUNICATION_COST_BYTES, row] = (
            num_bytes[row] + moved_bytes[row]
        ) / num_iterations
        metrics[BUBBLE_FRACTION, row] = 1.0 - busy_s[row] / (num_used * duration_s)
        metrics[TOKENS_PER_S, row] = num_tokens / duration_s
        metrics[MIGRATION_S, row] = migrations_s[row]
        metrics[MOVED_BYTES, row] = moved_bytes[row]
        metrics[BASELINE_ITERATION_TIME_S, row] = base_s[row]
        metrics[BASELINE_COMMUNICATION_COST_BYTES, row] = base_bytes[row]
