"""Requests of an inference service: when they come, and how many tokens they read and write."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from des.base.checks import require_count, require_non_negative

MOST_TOKENS = 10**8
"""Largest number of tokens of a request; more is taken for a fault of the trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request: a prompt that is read, and an answer that is written token by token.

    Raises
    ------
    ValueError
        If the arrival is negative or not finite, or a number of tokens is not positive.
    """

    request_id: int
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    prefix_blocks: tuple[int, ...] = ()
    """Names of the blocks of the prompt, first to last; equal names hold equal tokens."""

    def __post_init__(self) -> None:
        owner = f"request {self.request_id}"
        require_non_negative(owner, "arrival_s", self.arrival_s)
        require_count(owner, "prompt_tokens", self.prompt_tokens, MOST_TOKENS)
        require_count(owner, "output_tokens", self.output_tokens, MOST_TOKENS)


def require_in_order(source: str, requests: Sequence[Request]) -> None:
    """Refuse requests that are none, out of order or have the same name.

    Raises
    ------
    ValueError
        Naming the source and the first request that is wrong.
    """
    if not requests:
        raise ValueError(f"{source}: must have at least 1 request, got 0")
    for before, after in pairwise(requests):
        if after.arrival_s < before.arrival_s:
            raise ValueError(
                f"{source}: requests must be in order of arrival_s; request {after.request_id} at "
                f"{after.arrival_s!r} s follows {before.arrival_s!r} s"
            )
    if len({request.request_id for request in requests}) != len(requests):
        raise ValueError(f"{source}: request_id must differ between requests, got one twice")
