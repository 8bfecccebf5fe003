"""Fit of iteration times by batch and context to a measured profile, and its errors.

A gap is ``base + b per_request + b^2 per_square_request + b L per_context + L per_mean_context``,
for ``b`` requests of context ``L``, and ``(b - 1) L^2`` times a stall. The stall is no part of an
iteration: it is taken for prompts of the other requests that were read while the gaps were
measured, and the engine, which simulates such prompts, leaves it out. Relative errors are least in
their squares.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from calibration.measured.serving_profiles import EngineProfile
from des.serving.batch_times import BatchTimes

_MS = 1e-3
Cells = Sequence[int] | np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFit:
    """Times of an iteration, and the stall of a measured gap by prompts of others."""

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
            batch * context,
            context,
            (batch - 1) * context**2,
        ],
        axis=1,
    )[rows]
    scaled = columns / measured_s[rows, None]
    scale = np.abs(scaled).max(axis=0)
    found = np.linalg.lstsq(scaled / scale, np.ones(len(rows)), rcond=None)[0] / scale
    overhead_s, per_token_s, per_context_s = _fit_prompts(profile, prompts)
    base_s, per_request_s, square_s, by_context_s, mean_s, stall_s = map(float, found)
    times = BatchTimes(
        base_s=base_s,
        per_prompt_token_s=per_token_s,
        per_prompt_context_s=per_context_s,
        per_request_s=per_request_s,
        per_context_s=by_context_s,
        per_square_request_s=square_s,
        per_mean_context_s=mean_s,
    )
    return ServingFit(times=times, stall_s=stall_s), overhead_s


def _fit_prompts(profile: EngineProfile, prompts: Cells | None) -> tuple[float, float, float]:
    tokens = np.array(profile.prompt_tokens)
    measured_s = np.array(profile.prefill_ms) * _MS
    rows = np.arange(len(tokens)) if prompts is None else np.asarray(prompts)
    columns = np.stack([np.ones_like(tokens), tokens, tokens**2 / 2], axis=1)[rows]
    scaled = columns / measured_s[rows, None]
    scale = scaled.max(axis=0)
    overhead, per_token, per_context = nnls(scaled / scale, np.ones(len(rows)))[0] / scale
    return float(overhead), float(per_token), float(per_context)


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
