"""Fit of iteration times by batch and context to a measured profile, and its errors.

A gap is ``base + b per_request + b^2 per_square_request + above_256 + b L per_context
+ L per_mean_context``, for ``b`` requests of context ``L``, and ``(b - 1) L^2`` times a stall.
``above_256`` is there in batches of more than 256 requests. The stall is no part of an iteration:
it is taken for prompts of the other requests that were read while the gaps were measured, and the
engine, which simulates such prompts, leaves it out. The sum of the absolute relative errors is
least, so that single cells far off all others do not bend the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from calibration.measured.serving_profiles import EngineProfile
from des.serving.batch_times import STEP_REQUESTS, BatchTimes

_MS = 1e-3
_NOT_FALLING_TO = 512
"""Batch up to which times must not fall, or the largest one measured."""
_FREE = (None, None)
_NOT_NEGATIVE = (0.0, None)
Cells = Sequence[int] | np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFit:
    """Times of an iteration, and the stall of a measured gap by other prompts."""

    times: BatchTimes
    stall_s: float

    def gap_s(self, batch: float, context: float) -> float:
        """Gap that the profile should show. [s]"""
        within_s = self.times.first_s(int(batch), int(batch * context))
        return within_s + self.stall_s * (batch - 1) * context**2

    def prefill_s(self, prompt_tokens: float, base_s: float) -> float:
        """Time of a prompt alone, with the overhead of a request of the profile. [s]"""
        times = self.times
        half_square = times.per_prompt_context_s * prompt_tokens**2 / 2
        return base_s + times.per_prompt_token_s * prompt_tokens + half_square


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutErrors:
    """Relative errors of cells that a fit has not seen."""

    batch: tuple[int, ...]
    context: tuple[float, ...]
    gap_fraction: tuple[float, ...]
    prefill_fraction: tuple[float, ...]


def fit_profile(
    profile: EngineProfile, gaps: Cells | None = None, prompts: Cells | None = None
) -> tuple[ServingFit, float]:
    """Fit to some cells (default: all); also return the overhead of a prompt alone. [s]

    Raises
    ------
    ValueError
        If the fit gives times that are no times, naming the coefficient.
    """
    batch = np.array(profile.batches, float)
    context = np.array(profile.context_tokens)
    measured_s = np.array(profile.gap_ms) * _MS
    rows = np.arange(len(batch)) if gaps is None else np.asarray(gaps)
    columns = np.stack(
        [
            np.ones_like(batch),
            batch,
            batch**2,
            batch > STEP_REQUESTS,
            batch * context,
            context,
            (batch - 1) * context**2,
        ],
        axis=1,
    )[rows]
    bounds = [_NOT_NEGATIVE, _NOT_NEGATIVE, _FREE, _NOT_NEGATIVE, _NOT_NEGATIVE, _FREE, _FREE]
    slope = np.array([0.0, 1.0, 2.0 * min(batch.max(), _NOT_FALLING_TO), 0.0, 0.0, 0.0, 0.0])
    found = least_deviations(columns, measured_s[rows], bounds, slope)
    overhead_s, per_token_s, per_context_s = _fit_prompts(profile, prompts)
    base_s, per_request_s, square_s, step_s, by_context_s, mean_s, stall_s = map(float, found)
    times = BatchTimes(
        base_s=base_s,
        per_prompt_token_s=per_token_s,
        per_prompt_context_s=per_context_s,
        per_request_s=per_request_s,
        per_context_s=by_context_s,
        per_square_request_s=square_s,
        per_mean_context_s=mean_s,
        above_256_s=step_s,
    )
    return ServingFit(times=times, stall_s=stall_s), overhead_s


def _fit_prompts(profile: EngineProfile, prompts: Cells | None) -> tuple[float, float, float]:
    tokens = np.array(profile.prompt_tokens)
    measured_s = np.array(profile.prefill_ms) * _MS
    rows = np.arange(len(tokens)) if prompts is None else np.asarray(prompts)
    columns = np.stack([np.ones_like(tokens), tokens, tokens**2 / 2], axis=1)[rows]
    found = least_deviations(columns, measured_s[rows], [_NOT_NEGATIVE] * 3)
    overhead, per_token, per_context = map(float, found)
    return overhead, per_token, per_context


def least_deviations(
    columns: np.ndarray,
    measured: np.ndarray,
    bounds: Sequence[tuple[float | None, float | None]],
    not_negative: np.ndarray | None = None,
) -> np.ndarray:
    """Coefficients (K,) with the least sum of absolute relative errors, by a linear program.

    Parameters
    ----------
    columns
        Values (N, K) that the coefficients multiply.
    measured
        Sums (N,), positive.
    bounds
        Least and largest value of each coefficient; None: no bound.
    not_negative
        Weights (K,) of a sum of the coefficients that must not be negative (None: there is none).

    Examples
    --------
    >>> columns = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0], [1.0, 4.0]])
    >>> np.round(least_deviations(columns, np.array([3.0, 5.0, 99.0, 9.0]), [(0, None)] * 2), 9)
    array([1., 2.])
    """
    num, width = columns.shape
    scaled = columns / measured[:, None]
    scale = np.abs(scaled).max(axis=0)
    scale[scale == 0.0] = 1.0  # a column that no cell has
    deviations = np.eye(num)
    limit = None
    if not_negative is not None:
        row = -not_negative / scale
        limit = np.r_[row / np.abs(row).max(), np.zeros(2 * num)][np.newaxis]
    result = linprog(
        np.r_[np.zeros(width), np.ones(2 * num)],
        A_ub=limit,
        b_ub=None if limit is None else np.zeros(1),
        A_eq=np.hstack([scaled / scale, deviations, -deviations]),
        b_eq=np.ones(num),
        bounds=[*bounds, *[_NOT_NEGATIVE] * (2 * num)],
    )
    assert result.success, result.message
    assert result.x is not None
    found: np.ndarray = np.asarray(result.x[:width]) / scale
    return found


def held_out_errors(profile: EngineProfile) -> HeldOutErrors:
    """Fit to every second cell and look at the others, then the other way round."""
    batch, context = np.array(profile.batches), np.array(profile.context_tokens)
    gaps = np.zeros(len(batch))
    prompts = np.zeros(len(profile.prompt_tokens))
    for half in (0, 1):
        fit, overhead_s = fit_profile(
            profile,
            np.arange(half, len(batch), 2),
            np.arange(half, len(prompts), 2),
        )
        for place in range(1 - half, len(batch), 2):
            expected_s = fit.gap_s(batch[place], context[place])
            gaps[place] = expected_s / (profile.gap_ms[place] * _MS) - 1
        for place in range(1 - half, len(prompts), 2):
            expected_s = fit.prefill_s(profile.prompt_tokens[place], overhead_s)
            prompts[place] = expected_s / (profile.prefill_ms[place] * _MS) - 1
    return HeldOutErrors(
        batch=tuple(map(int, batch)),
        context=tuple(map(float, context)),
        gap_fraction=tuple(map(float, gaps)),
        prefill_fraction=tuple(map(float, prompts)),
    )
