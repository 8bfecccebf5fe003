"""Simulation of instances that work in turns: prompts first, decode steps when no prompt waits.

Source of rules and costs: DistServe (Zhong et al., OSDI 2024), whose times are linear in tokens,
context and batch.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from des.base.checks import require_count, require_non_negative
from des.clock import Clock
from des.serving.requests import Request, require_in_order
from scenarios.reproduce.serving_oracles.courses import (
    RANK,
    ContextTimes,
    RequestCourse,
    call_at,
    simulate_arrivals,
)

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


_WAKE = RANK + 1
"""Rank of an instance that wakes: after all that comes at the same time."""


def run_turns(world: TurnWorld) -> TurnHistory:
    """Simulate until every request is finished or nothing can happen any more."""
    service = _TurnService(world)
    simulate_arrivals(service.clock, world.requests, service.arrive)
    return service.history()


def pick_prompts(queue: "deque[TurnRequest]", settings: TurnSettings) -> list[int]:
    """Pieces of the first prompts of a queue that the next turn takes, in order."""
    pieces: list[int] = []
    tokens = 0
    for one in islice(queue, settings.prefill_max_requests):
        room = settings.prefill_max_tokens - tokens
        if settings.is_chunked:
            piece = min(one.left, room - tokens if settings.subtracts_twice else room)
            if piece <= 0:
                break
        else:
            piece = one.left
            if piece > room:
                break
        pieces.append(piece)
        tokens += piece
    return pieces


def num_decoding(queue: "deque[TurnRequest]", most: int, context_limit: int) -> int:
    """Number of the first requests of a queue that decode together within a limit of context."""
    room = context_limit
    num = 0
    for one in islice(queue, max(most, 0)):
        if one.context + 1 > room:
            break
        room -= one.context + 1
        num += 1
    return num


class _TurnService:
    def __init__(self, world: TurnWorld) -> None:
        self.world = world
        self.clock = Clock()
        self.requests: list[TurnRequest] = []
        self.instances = [_TurnInstance(self, place) for place in range(world.num_instances)]
        is_split = world.layout == "split"
        self.readers = self.instances[: world.num_prefill] if is_split else self.instances
        self.writers = self.instances[world.num_prefill :] if is_split else []

    def arrive(self, request: Request) -> None:
        """Put a request at the end of the shortest prompt queue."""
        one = TurnRequest(request)
        self.requests.append(one)
        place = min(self.readers, key=lambda each: len(each.prompts) + len(each.reading))
        one.prompt_place = place.number
        place.prompts.append(one)
        place.wake()

    def decode_at(self, one: TurnRequest, reader: "_TurnInstance") -> None:
        """Let a request whose prompt is complete join a decode queue."""
        place = min(self.writers, key=lambda each: len(each.tokens)) if self.writers else reader
        one.token_place = place.number
        place.tokens.append(one)
        place.wake()

    def history(self) -> TurnHistory:
        """Collect requests and turns."""
        return TurnHistory(
            requests=tuple(self.requests),
            prompt_turns=tuple(one.prompt_turns for one in self.instances),
            token_turns=tuple(one.token_turns for one in self.instances),
        )


class _TurnInstance:
    def __init__(self, service: _TurnService, number: int) -> None:
        self.service = service
        self.number = number
        self.settings = service.world.settings
        self.prompts: deque[TurnRequest] = deque()
        self.tokens: deque[TurnRequest] = deque()
        self.reading: list[TurnRequest] = []
        self.is_awake = False
        self.prompt_turns = self.token_turns = 0

    def wake(self) -> None:
        """Begin a turn behind all that happens now, if the instance sleeps."""
        if not self.is_awake:
            self.is_awake = True
            clock = self.service.clock
            call_at(clock, clock.now, self.begin, _WAKE)

    def begin(self) -> None:
        """Begin the next turn, or sleep."""
        settings, clock = self.settings, self.service.clock
        pieces = pick_prompts(self.prompts, settings)
        self.reading = [self.prompts.popleft() for _ in pieces]
        for one in self.reading:
            if one.start_s is None:
                one.start_s = clock.now
        most = settings.decode_max_requests
        if pieces:
            most = settings.prefill_max_tokens - sum(pieces) if settings.is_chunked else 0
        num = num_decoding(self.tokens, most, settings.decode_max_context_tokens)
        writing = [self.tokens.popleft() for _ in range(num)]
        if not self.reading and not writing:
            self.is_awake = False
            return
        if pieces:
            self.prompt_turns += 1
        else:
            self.token_turns += 1
        end_s = clock.now + self._turn_s(pieces, writing)
        call_at(clock, end_s, lambda: self._end(pieces, writing))

    def _turn_s(self, pieces: list[int], writing: list[TurnRequest]) -> float:
        settings = self.settings
        context = sum(one.context for one in writing)
        held = sum(one.request.prompt_tokens for one in self.reading) + context
        if pieces:
            time_s = settings.prefill.iteration_s([(piece, 0) for piece in pieces])
            time_s += settings.prefill_overhead_s
        else:
            is_large = len(writing) >= settings.decode_large_from_requests
            times = settings.decode_large if is_large else settings.decode_small
            time_s = times.turn_s(context + len(writing), len(writing))
        return time_s + settings.turn_overhead_s + settings.per_held_token_overhead_s * held

    def _end(self, pieces: list[int], writing: list[TurnRequest]) -> None:
        now = self.service.clock.now
        reading, self.reading = self.reading, []
        for one, piece in zip(reading, pieces, strict=True):
            one.left -= piece
            if one.left:
                self.prompts.append(one)
            else:
                one.first_token_s = now
                self.service.decode_at(one, self)
        for one in writing:
            one.steps += 1
            if one.steps == one.request.output_tokens:
                one.end_s = now
            else:
                self.tokens.append(one)
        self.begin()
