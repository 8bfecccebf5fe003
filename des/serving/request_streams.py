"""Streams of requests: drawn by a Poisson or a Markov-modulated law, stretched, thinned."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from des.base.checks import require_count, require_fraction, require_positive
from des.dynamics.law import Law
from des.serving.requests import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLengths:
    """Lognormal numbers of tokens: means, and standard deviations over them."""

    prompt_mean: float = 1000.0
    output_mean: float = 200.0
    variation: float = 1.0
    max_tokens: int = 16_000

    def __post_init__(self) -> None:
        require_positive("token lengths", "prompt_mean", self.prompt_mean)
        require_positive("token lengths", "output_mean", self.output_mean)
        require_positive("token lengths", "variation", self.variation)
        require_count("token lengths", "max_tokens", self.max_tokens)


DEFAULT_LENGTHS = TokenLengths()


def poisson_arrivals(
    rate_per_s: float, begin_s: float, end_s: float, rng: np.random.Generator
) -> list[float]:
    """Draw arrivals of a Poisson process between two times, in order. [s]"""
    num = rng.poisson(rate_per_s * (end_s - begin_s))
    return sorted(rng.uniform(begin_s, end_s, num).tolist())


def poisson_requests(
    rate_per_s: float, duration_s: float, seed: int, lengths: TokenLengths = DEFAULT_LENGTHS
) -> tuple[Request, ...]:
    """Draw requests at a constant rate.

    Raises
    ------
    ValueError
        If rate or duration is not positive, or no request is drawn.
    """
    return modulated_requests((rate_per_s,), duration_s, duration_s, seed, lengths)


def modulated_requests(
    rates_per_s: Sequence[float],
    mean_stay_s: float,
    duration_s: float,
    seed: int,
    lengths: TokenLengths = DEFAULT_LENGTHS,
) -> tuple[Request, ...]:
    """Draw requests of a Markov-modulated Poisson process (MMPP) that begins at its first rate.

    Each rate holds for an exponential time; then another one is drawn, all alike.

    Raises
    ------
    ValueError
        If a rate or a time is not positive, or no request is drawn.
    """
    for rate in rates_per_s:
        require_positive("request stream", "rate_per_s", rate)
    require_positive("request stream", "mean_stay_s", mean_stay_s)
    require_positive("request stream", "duration_s", duration_s)
    rng = np.random.default_rng(seed)
    arrivals: list[float] = []
    begin_s, state = 0.0, 0
    while begin_s < duration_s:
        stay_s = rng.exponential(mean_stay_s) if len(rates_per_s) > 1 else duration_s
        end_s = min(begin_s + stay_s, duration_s)
        arrivals += poisson_arrivals(rates_per_s[state], begin_s, end_s, rng)
        others = [each for each in range(len(rates_per_s)) if each != state]
        state = int(rng.choice(others)) if others else state
        begin_s = end_s
    return _requests_at(arrivals, duration_s, rng, lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnlyStream:
    """The stream of requests, in the place of the link that a law moves."""

    source: str = "users"
    target: str = "service"
    bandwidth_bytes_per_s: float = 1.0
    latency_s: float = 1.0


def draw_moving_requests(
    law: Law,
    rate_per_s: float,
    duration_s: float,
    seed: int,
    lengths: TokenLengths = DEFAULT_LENGTHS,
) -> tuple[Request, ...]:
    """Draw requests at a rate that moves by a law of `des.dynamics`, as the bandwidth of a link.

    Raises
    ------
    ValueError
        If rate or duration is not positive, or no request is drawn.
    """
    require_positive("request stream", "rate_per_s", rate_per_s)
    require_positive("request stream", "duration_s", duration_s)
    path, rng = law.path([_OnlyStream()], seed), np.random.default_rng(seed)
    arrivals: list[float] = []
    begin_s = 0.0
    while begin_s < duration_s:
        piece = path.piece_at(0, begin_s)
        end_s = min(piece.end_s, duration_s)
        arrivals += poisson_arrivals(rate_per_s * piece.bandwidth_factor, begin_s, end_s, rng)
        begin_s = end_s
    return _requests_at(arrivals, duration_s, rng, lengths)


def _requests_at(
    arrivals: Sequence[float], duration_s: float, rng: np.random.Generator, lengths: TokenLengths
) -> tuple[Request, ...]:
    if not arrivals:
        raise ValueError(f"request stream: no request is drawn within {duration_s:g} s")
    prompts = _lengths(rng, lengths.prompt_mean, lengths, len(arrivals))
    outputs = _lengths(rng, lengths.output_mean, lengths, len(arrivals))
    return tuple(
        Request(request_id=number, arrival_s=at_s, prompt_tokens=prompt, output_tokens=output)
        for number, (at_s, prompt, output) in enumerate(
            zip(arrivals, prompts, outputs, strict=True)
        )
    )


def _lengths(rng: np.random.Generator, mean: float, lengths: TokenLengths, num: int) -> list[int]:
    variance = np.log1p(lengths.variation**2)
    drawn = mean * rng.lognormal(-variance / 2, np.sqrt(variance), num)
    return [int(each) for each in np.clip(np.rint(drawn), 1, lengths.max_tokens)]


def stretched(requests: Sequence[Request], factor: float) -> tuple[Request, ...]:
    """Multiply all arrivals by a factor: 0.5 is twice the load."""
    require_positive("request stream", "stretch", factor)
    return tuple(replace(each, arrival_s=each.arrival_s * factor) for each in requests)


def thinned(requests: Sequence[Request], fraction: float, seed: int) -> tuple[Request, ...]:
    """Keep each request with a probability.

    Raises
    ------
    ValueError
        If the fraction is not within (0, 1], or nothing is kept.
    """
    require_fraction("request stream", "thin", fraction)
    kept = np.random.default_rng(seed).random(len(requests)) < fraction
    found = tuple(each for each, is_kept in zip(requests, kept, strict=True) if is_kept)
    if not found:
        raise ValueError(f"request stream: thin {fraction} keeps none of {len(requests)} requests")
    return found
