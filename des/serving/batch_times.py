"""Time of an iteration by its prompt tokens, its decoding requests and their context."""

import math
from dataclasses import dataclass

from des.base.checks import require_non_negative, require_positive

STEP_REQUESTS = 256
"""Requests above which an iteration is slower at once, as all profiles of H100 show; the limit of
captured CUDA graphs is taken to be the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTimes:
    """Coefficients of one engine on its hardware.

    An iteration takes ``base_s``, ``per_prompt_token_s`` for each token of a prompt and
    ``per_prompt_context_s`` for each product of such a token and the tokens before it,
    ``per_request_s`` for each request that decodes, ``per_square_request_s`` for the square of
    their number, ``per_context_s`` for each token of their context and ``per_mean_context_s`` for
    each token of its mean over these requests; these two may have either sign, as the square.
    ``above_256_s`` is added where more than 256 requests decode.
    """

    base_s: float
    per_prompt_token_s: float
    per_prompt_context_s: float
    per_request_s: float
    per_context_s: float
    per_square_request_s: float = 0.0
    per_mean_context_s: float = 0.0
    above_256_s: float = 0.0

    def __post_init__(self) -> None:
        require_positive("batch times", "base_s", self.base_s)
        for name in (
            "per_prompt_token_s",
            "per_prompt_context_s",
            "per_request_s",
            "per_context_s",
            "above_256_s",
        ):
            require_non_negative("batch times", name, getattr(self, name))
        if not 0.0 <= self.per_context_s + self.per_mean_context_s < math.inf:
            raise ValueError(
                f"batch times: per_mean_context_s must be finite and at least -per_context_s, "
                f"{-self.per_context_s!r}, got {self.per_mean_context_s!r}"
            )
        if not math.isfinite(self.per_square_request_s):
            raise ValueError(
                f"batch times: per_square_request_s must be finite, got "
                f"{self.per_square_request_s!r}"
            )

    def mix_s(
        self, prompt_tokens: int, prompt_products: float, num_decoding: int, context: int
    ) -> float:
        """Time of one iteration with prompts. [s]

        ``prompt_products`` is the sum over prompts of new tokens times the mean context of them.
        """
        return (
            self.first_s(num_decoding, context)
            + self.per_prompt_token_s * prompt_tokens
            + self.per_prompt_context_s * prompt_products
        )

    def first_s(self, num_decoding: int, context: int) -> float:
        """Time of an iteration in which requests decode with that much context in all. [s]"""
        if num_decoding == 0:
            return self.base_s
        return (
            self.base_s
            + (self.per_request_s + self.per_square_request_s * num_decoding) * num_decoding
            + self.per_context_s * context
            + self.per_mean_context_s * (context / num_decoding)
            + (self.above_256_s if num_decoding > STEP_REQUESTS else 0.0)
        )

    def growth_s(self, num_decoding: int) -> float:
        """Time by which the next iteration of a run is longer. [s]"""
        return self.per_context_s * num_decoding + self.per_mean_context_s

    def run_s(self, num: int, num_decoding: int, context: int) -> float:
        """Time of iterations that only decode, in which the context grows. [s]

        Examples
        --------
        >>> times = BatchTimes(
        ...     base_s=1.0,
        ...     per_prompt_token_s=0.0,
        ...     per_prompt_context_s=0.0,
        ...     per_request_s=0.5,
        ...     per_context_s=0.25,
        ... )
        >>> times.run_s(2, 2, 8) == times.first_s(2, 8) + times.first_s(2, 10)
        True
        """
        first_s, growth_s = self.first_s(num_decoding, context), self.growth_s(num_decoding)
        return num * first_s + growth_s * (num * (num - 1) / 2)

    def num_within(self, elapsed_s: float, most: int, num_decoding: int, context: int) -> int:
        """Number of whole iterations of a run that end within a time, at most ``most``."""
        first_s = self.first_s(num_decoding, context)
        half_s = self.growth_s(num_decoding) / 2
        linear_s = first_s - half_s
        root = math.sqrt(linear_s * linear_s + 4.0 * half_s * elapsed_s)
        num = min(int(2.0 * elapsed_s / (linear_s + root)), most)
        while num > 0 and self.run_s(num, num_decoding, context) > elapsed_s:
            num -= 1
        while num < most and self.run_s(num + 1, num_decoding, context) <= elapsed_s:
            num += 1
        return num
