"""An instance with continuous batching: chunks of prompts beside decoding, recompute.

A run of iterations that only decode is one event; what arrives cuts it after the iteration that is
running. KV memory is counted in tokens: a prompt is reserved as a whole, each decoding request
takes one more token an iteration; where that does not fit, the last to begin is read again.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import simpy

from des.clock import Clock
from des.serving.fleet_requests import FleetRequest
from des.serving.fleet_world import Engine
from des.serving.gaps import NUM_BINS, bin_of

RUN_END, SENT, READY, ARRIVAL, CHECK, DECIDE = (kind << 50 for kind in (1, 2, 3, 4, 5, 6))
"""Ranks of events of number 0, in order: a run ends, KV arrives, an instance is ready, a request
arrives, a drain is looked at, a policy decides."""

STARTING, ACTIVE, DRAINING, STOPPED = "starting", "active", "draining", "stopped"


@dataclass(slots=True, eq=False, kw_only=True)
class FleetInstance:
    """One instance, what waits, is read and is written there, and its state.

    ``is_read`` tells whether a request whose prompt is read stays to be written; ``is_done`` and
    ``is_empty`` take note of a finished request, and that nothing is left to do here.
    """

    number: int
    pool: str
    clock: Clock
    engine: Engine
    ordered_s: float
    ready_s: float
    is_read: "Callable[[FleetInstance, FleetRequest], bool]"
    is_done: Callable[[FleetRequest], None]
    is_empty: "Callable[[FleetInstance], None]"
    state: str = STARTING
    next_pool: str | None = None
    """Pool that it joins when it is drained; None: it stops."""
    active_s: float | None = None
    drained_from_s: float | None = None
    stopped_s: float | None = None
    waiting: deque[FleetRequest] = field(default_factory=deque)
    reading: list[FleetRequest] = field(default_factory=list)
    writing: list[FleetRequest] = field(default_factory=list)
    used: int = 0
    context: int = 0
    due_tokens: int = 0
    """Prompt tokens here that are not read yet."""
    leaving: int = 0
    """Tokens of requests whose KV memory is being sent away."""
    busy_s: float = 0.0
    gap_counts: list[int] = field(default_factory=lambda: [0] * NUM_BINS)
    gap_sum_s: float = 0.0
    num_gaps: int = 0
    sender_free_s: float = 0.0
    _run: int = 0
    _run_start_s: float = 0.0
    _run_num: int = 0
    _pieces: list[int] = field(default_factory=list)
    _is_running: bool = False

    @property
    def present(self) -> int:
        """Requests here."""
        return len(self.waiting) + len(self.reading) + len(self.writing)

    def busy_until_s(self, now_s: float) -> float:
        """Time worked until now."""
        return self.busy_s + (now_s - self._run_start_s if self._is_running else 0.0)

    def arrive(self, one: FleetRequest) -> None:
        """Let a request wait here; if it can be let in, cut the run."""
        self.waiting.append(one)
        self.due_tokens += one.to_read
        if not self._is_running:
            self.begin()
        elif not self._pieces and self._fits(self.waiting[0], self._used_now()):
            self._cut()

    def begin(self) -> None:
        """Let requests in, and run the next iterations as one event."""
        self._let_in()
        self._make_room()
        num_writing = len(self.writing)
        now = self.clock.now
        if self.reading:
            self._run_num = 1
            time_s = self._mixed_s(num_writing)
        elif num_writing:
            self._pieces = []
            left = min(one.request.output_tokens - one.written for one in self.writing)
            room = (self.engine.kv_capacity_tokens - self.used) // num_writing
            self._run_num = min(left, room)
            time_s = self.engine.times.run_s(self._run_num, num_writing, self.context)
        else:
            self._is_running = False
            if not self.waiting:
                self.is_empty(self)
            return
        self._is_running = True
        self._run_start_s = now
        self._end_at(now + time_s)

    def give_up(self) -> list[FleetRequest]:
        """Take everything away, as at the end of the time to drain; what was held is lost."""
        self._settle()
        given = [*self.writing, *self.reading, *self.waiting]
        for one in given:
            one.num_restarts += one.to_read < one.held
            one.forget(self.clock.now)
        self.waiting.clear()
        self.reading, self.writing = [], []
        self.context = self.due_tokens = 0
        return given

    def give_waiting(self) -> list[FleetRequest]:
        """Take away the requests of which nothing is read yet."""
        given = [one for one in self.waiting if one.to_read]
        self.waiting = deque(one for one in self.waiting if not one.to_read)
        self.due_tokens -= sum(one.to_read for one in given)
        return given

    def release(self, one: FleetRequest) -> None:
        """Free the memory of a request that has been sent away."""
        self.used -= one.held
        self.leaving -= one.held
        if not self._is_running:
            self.begin()
        elif not self._pieces and self.waiting and self._fits(self.waiting[0], self._used_now()):
            self._cut()

    def _used_now(self) -> int:
        """Tokens held after the iteration that is running now."""
        times, num_writing = self.engine.times, len(self.writing)
        elapsed_s = self.clock.now - self._run_start_s
        num = times.num_within(elapsed_s, self._run_num - 1, num_writing, self.context)
        return self.used + (num + 1) * num_writing

    def _fits(self, one: FleetRequest, used: int) -> bool:
        num = len(self.reading) + len(self.writing)
        needed = used + one.held + num + 1
        return num < self.engine.max_batch_size and needed <= self.engine.kv_capacity_tokens

    def _let_in(self) -> None:
        while self.waiting and self._fits(self.waiting[0], self.used):
            one = self.waiting.popleft()
            self.used += one.held
            if one.to_read:
                self.reading.append(one)
            else:
                self.writing.append(one)
                self.context += one.held

    def _make_room(self) -> None:
        """Give up the last that write until each of the others has room for a token."""
        while self.writing:
            free = self.engine.kv_capacity_tokens - self.used
            if free >= len(self.writing):
                return
            one = self.writing.pop()
            self.context -= one.held
            self.used -= one.held
            one.num_restarts += 1
            one.forget(self.clock.now)
            self.due_tokens += one.to_read
            self.waiting.appendleft(one)

    def _mixed_s(self, num_writing: int) -> float:
        budget = self.engine.chunk_tokens - num_writing
        tokens, products = 0, 0.0
        self._pieces = []
        for one in self.reading:
            piece = min(one.to_read, budget - tokens)
            if piece <= 0:
                break
            before = one.held - one.to_read
            products += piece * (before + piece / 2)
            tokens += piece
            self._pieces.append(piece)
        return self.engine.times.mixed_s(tokens, products, num_writing, self.context)

    def _end_at(self, time_s: float) -> None:
        self._run += 1
        run = self._run

        def end(_: simpy.Event) -> None:
            if run == self._run:
                self._end()
                self.begin()

        self.clock.at(time_s, RUN_END + self.number).callbacks.append(end)

    def _cut(self) -> None:
        """End the run after the iteration that is running now."""
        times, num_writing = self.engine.times, len(self.writing)
        elapsed_s = self.clock.now - self._run_start_s
        num = times.num_within(elapsed_s, self._run_num - 1, num_writing, self.context) + 1
        if num < self._run_num:
            self._run_num = num
            self._end_at(self._run_start_s + times.run_s(num, num_writing, self.context))

    def _settle(self) -> None:
        """Keep what whole iterations have written, and drop the run."""
        if self._is_running and not self._pieces:
            elapsed_s = self.clock.now - self._run_start_s
            num = self.engine.times.num_within(
                elapsed_s, self._run_num, len(self.writing), self.context
            )
            for one in self.writing:
                one.written += num
                one.held += num
        if self._is_running:
            self.busy_s += self.clock.now - self._run_start_s
        self._is_running = False
        self._run += 1
        self.used = self.leaving

    def _end(self) -> None:
        """Advance all that were in the batch; finished ones leave."""
        now, num = self.clock.now, self._run_num
        self.busy_s += now - self._run_start_s
        self._is_running = False
        if self.writing:
            self._write(num, now)
        if self._pieces:
            self._read(now)

    def _write(self, num: int, now: float) -> None:
        num_writing, times = len(self.writing), self.engine.times
        if self._pieces:
            first_s = last_s = now - self._run_start_s
            self._count_gaps(num_writing, first_s)
        else:
            first_s = times.first_s(num_writing, self.context)
            last_s = times.first_s(num_writing, self.context + (num - 1) * num_writing)
            self._count_gaps(num_writing * num, (first_s + last_s) / 2)
        self.used += num * num_writing
        self.context += num * num_writing
        is_any_done = False
        for one in self.writing:
            one.written += num
            one.held += num
            if last_s > one.longest_gap_s:  # noqa: PLR1730 - max() costs a call a request
                one.longest_gap_s = last_s
            if one.last_token_s >= 0:
                one.end_pause(self._run_start_s + first_s)
            if one.written == one.request.output_tokens:
                is_any_done = True
        if is_any_done:
            self._leave(now)

    def _leave(self, now: float) -> None:
        stay = []
        for one in self.writing:
            if one.written < one.request.output_tokens:
                stay.append(one)
                continue
            one.end_s = now
            self.used -= one.held
            self.context -= one.held
            self.is_done(one)
        self.writing = stay

    def _read(self, now: float) -> None:
        pieces, self._pieces = self._pieces, []
        num_read = 0
        for one, piece in zip(self.reading, pieces, strict=False):
            one.to_read -= piece
            self.due_tokens -= piece
            num_read += one.to_read == 0
        read, self.reading = self.reading[:num_read], self.reading[num_read:]
        for one in read:
            one.written += 1
            if one.first_token_s is None:
                one.first_token_s = now
                one.prompt_instance = self.number
            one.end_pause(now)
            if one.written == one.request.output_tokens:
                one.end_s = now
                self.used -= one.held
                self.is_done(one)
            elif self.is_read(self, one):
                one.token_instance = self.number
                self.writing.append(one)
                self.context += one.held

    def _count_gaps(self, num: int, gap_s: float) -> None:
        self.gap_counts[bin_of(gap_s)] += num
        self.gap_sum_s += num * gap_s
        self.num_gaps += num
