"""Arrivals, calls at a time and courses of requests, which all oracles share."""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from des.clock import Clock, Event
from des.serving.requests import Request

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
