"""Prefill and decode instances that work in turns, prompts first: world, state, history.

Source of rules and costs: DistServe (Zhong et al., OSDI 2024), whose times are linear in tokens,
context and batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from des.base.checks import require_count, require_non_negative
from des.serving.requests import Request, require_in_order
from scenarios.reproduce.serving_oracles.courses import RequestCourse
from scenarios.reproduce.serving_oracles.iteration_times import ContextTimes

LAYOUTS = ("split", "colocated")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeTimes:
    """Time of a turn of decode steps alone: linear in the context and in the requests."""

    constant_s: float
    per_context_token_s: float
    per_request_s: float

    def turn_s(self, context_tokens: int, num_requests: int) -> float:
        """Time of one step of all requests. [s]"""
        return (
            self.constant_s
            + self.per_context_token_s * context_tokens
            + self.per_request_s * num_requests
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """Limits and times of the instances.

    ``subtracts_twice`` is a fault of a reference program: with chunks, tokens picked so far are
    taken from the limit twice.
    """

    is_chunked: bool
    prefill_max_requests: int
    prefill_max_tokens: int
    decode_max_requests: int
    decode_max_context_tokens: int
    prefill: ContextTimes
    decode_small: DecodeTimes
    decode_large: DecodeTimes
    decode_large_from_requests: int
    prefill_overhead_s: float = 0.0
    turn_overhead_s: float = 0.0
    per_held_token_overhead_s: float = 0.0
    subtracts_twice: bool = False

    def __post_init__(self) -> None:
        for name in (
            "prefill_max_requests",
            "prefill_max_tokens",
            "decode_max_requests",
            "decode_max_context_tokens",
        ):
            require_count("turn settings", name, getattr(self, name))
        for name in ("prefill_overhead_s", "turn_overhead_s", "per_held_token_overhead_s"):
            require_non_negative("turn settings", name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnWorld:
    """Instances, of which the first ``num_prefill`` read prompts and the others write tokens.

    Under the layout ``colocated`` all of them do both.
    """

    requests: Sequence[Request]
    layout: str
    num_instances: int
    num_prefill: int
    settings: TurnSettings

    def __post_init__(self) -> None:
        require_in_order("requests", self.requests)
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout must be one of {LAYOUTS}, got {self.layout!r}")
        require_count("serving world", "num_instances", self.num_instances)
        if self.layout == "split" and not 1 <= self.num_prefill < self.num_instances:
            raise ValueError(
                f"serving world: num_prefill must be from 1 to {self.num_instances - 1}, so that "
                f"prefill and decode have an instance each, got {self.num_prefill}"
            )


@dataclass(slots=True, eq=False)
class TurnRequest(RequestCourse):
    """One request: tokens of its prompt that are left, and decode steps that are done."""

    left: int = 0
    steps: int = 0
    prompt_place: int = -1
    token_place: int = -1

    def __post_init__(self) -> None:
        self.left = self.request.prompt_tokens

    @property
    def context(self) -> int:
        """Tokens before the next decode step."""
        return self.request.prompt_tokens + self.steps


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHistory:
    """All requests in order of arrival, and turns of each instance."""

    requests: tuple[TurnRequest, ...]
    prompt_turns: tuple[int, ...]
    token_turns: tuple[int, ...]
