"""Arrivals, courses of requests and times of an iteration, which all oracles share."""

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from des.base.checks import require_non_negative, require_positive
from des.clock import Clock, Event
from des.serving.requests import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationTable:
    """Measured times of an iteration by the number of tokens in its batch.

    An iteration with a prompt takes the prompt column, others the token column. Between the rows
    times are linear; outside, the first or last segment is continued, and never below 0.

    Raises
    ------
    ValueError
        If there are fewer than two rows, they are not increasing, or a time is not positive.
    """

    name: str
    batch_tokens: tuple[float, ...]
    prompt_s: tuple[float, ...]
    token_s: tuple[float, ...]
    mixed_factor: float = 1.0
    """Factor of an iteration with prompts and with tokens."""

    def __post_init__(self) -> None:
        owner = f"iteration table {self.name}"
        lengths = (len(self.batch_tokens), len(self.prompt_s), len(self.token_s))
        if min(lengths) < 2 or len(set(lengths)) > 1:
            raise ValueError(
                f"{owner}: batch_tokens, prompt_s and token_s must have the same number of rows, "
                f"at least 2, got {lengths}"
            )
        if any(after <= before for before, after in pairwise(self.batch_tokens)):
            raise ValueError(f"{owner}: batch_tokens must increase, got {self.batch_tokens}")
        for time_s in (*self.prompt_s, *self.token_s):
            require_positive(owner, "prompt_s and token_s", time_s)
        require_positive(owner, "mixed_factor", self.mixed_factor)

    def iteration_s(self, tokens: int, *, has_prompt: bool, has_token: bool) -> float:
        """Time of one iteration of a batch with that many tokens. [s]

        Examples
        --------
        >>> table = IterationTable(
        ...     name="toy", batch_tokens=(100, 200), prompt_s=(1, 3), token_s=(1, 1)
        ... )
        >>> table.iteration_s(150, has_prompt=True, has_token=False)
        2.0
        """
        column = self.prompt_s if has_prompt else self.token_s
        time_s = interpolate(self.batch_tokens, column, tokens)
        return time_s * self.mixed_factor if has_prompt and has_token else time_s


def interpolate(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """Linear interpolation; outside, the first or last segment is continued.

    Examples
    --------
    >>> interpolate((0.0, 1.0, 2.0), (0.0, 1.0, 4.0), 3.0)
    7.0
    """
    low = min(max(bisect_right(xs, x) - 1, 0), len(xs) - 2)
    x_low, y_low = xs[low], ys[low]
    return y_low + (ys[low + 1] - y_low) * ((x - x_low) / (xs[low + 1] - x_low))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTimes:
    """Time linear in new tokens, and in the products of new tokens and the context before them."""

    base_s: float
    per_token_s: float
    per_token_context_s: float

    def __post_init__(self) -> None:
        for field in ("base_s", "per_token_s", "per_token_context_s"):
            require_non_negative("iteration_time", field, getattr(self, field))

    def iteration_s(self, parts: Sequence[tuple[int, int]]) -> float:
        """Time of a batch on one stage. [s]

        Parameters
        ----------
        parts
            For each request its new tokens and the tokens that it has already processed.

        Examples
        --------
        >>> times = ContextTimes(base_s=1.0, per_token_s=0.5, per_token_context_s=0.25)
        >>> times.iteration_s([(2, 4)])
        5.0
        """
        tokens = sum(new for new, _ in parts)
        context = sum(new * (done + new) for new, done in parts)
        return self.base_s + self.per_token_s * tokens + self.per_token_context_s * context


RANK = 2
"""Rank of events, behind SimPy's own: at one time they happen in the order of their creation."""


@dataclass(slots=True, eq=False)
class RequestCourse:
    """A request, and when it was begun, had its first token and had its last. [s]"""

    request: Request
    start_s: float | None = None
    first_token_s: float | None = None
    end_s: float | None = None

    def latencies_s(self) -> tuple[float, float, float]:
        """Time in the queue, to the first token and to the last, of a finished request."""
        assert self.start_s is not None
        assert self.first_token_s is not None
        assert self.end_s is not None
        arrival_s = self.request.arrival_s
        return self.start_s - arrival_s, self.first_token_s - arrival_s, self.end_s - arrival_s


def call_at(clock: Clock, time_s: float, action: Callable[[], None], rank: int = RANK) -> None:
    """Call something at a time that is not yet past."""
    clock.at(time_s, rank).callbacks.append(lambda _: action())


def simulate_arrivals(
    clock: Clock, requests: Iterable[Request], arrive: Callable[[Request], None]
) -> None:
    """Let requests arrive at their times, and simulate until nothing can happen any more."""

    def arrivals() -> Generator[Event, None, None]:
        for request in requests:
            yield clock.at(request.arrival_s, RANK)
            arrive(request)

    clock.process(arrivals())
    clock.run_out()


def course_columns(done: Sequence[RequestCourse]) -> dict[str, list[Any]]:
    """Names and latencies of finished requests, by column."""
    latencies = [one.latencies_s() for one in done]
    return {
        "request_id": [one.request.request_id for one in done],
        "queue_s": [queue_s for queue_s, _, _ in latencies],
        "ttft_s": [ttft_s for _, ttft_s, _ in latencies],
        "e2e_s": [e2e_s for _, _, e2e_s in latencies],
    }


def course_totals(courses: Sequence[RequestCourse]) -> dict[str, float]:
    """Numbers of requests and of finished ones, and the end of the last. [s]"""
    ends_s = [one.end_s for one in courses if one.end_s is not None]
    return {
        "num_requests": len(courses),
        "num_completed": len(ends_s),
        "end_s": max(ends_s, default=0.0),
    }
