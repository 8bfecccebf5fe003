"""An instance with continuous batching: prompts in chunks during decoding, recompute or swap.

A run of iterations that only decode is one event; what arrives cuts it after the iteration that is
running. KV memory is counted in tokens: a prompt is reserved as a whole, each decoding request
takes one more token an iteration; where that does not fit, the last to begin is read again, or
moved to the memory of the host and back.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import simpy

from des.clock import Clock
from des.serving.fleet_batch import Batch
from des.serving.fleet_requests import FleetRequest
from des.serving.gaps import GapCounter
from des.serving.instance_life import RUN_END, Life
from des.serving.prompt_chunks import chunk_pieces, piece_products


@dataclass(slots=True, eq=False, kw_only=True)
class FleetInstance(Batch):
    """One instance, what waits, is read and is written there, and its state.

    ``is_read`` tells whether a request whose prompt is read stays to be written; ``is_done`` and
    ``is_empty`` take note of a finished request, and that nothing is left to do here.
    """

    number: int
    pool: str
    clock: Clock
    ordered_s: float
    ready_s: float
    is_read: "Callable[[FleetInstance, FleetRequest], bool]"
    is_done: Callable[[FleetRequest], None]
    is_empty: "Callable[[FleetInstance], None]"
    next_pool: str | None = None
    """Pool that it joins when it is drained; None: it stops."""
    active_s: float | None = None
    drained_from_s: float | None = None
    stopped_s: float | None = None
    leaving: int = 0
    """Tokens of requests whose KV memory is being sent away."""
    moves_out: bool = False
    """Whether requests are sent to other instances while it drains."""
    busy_s: float = 0.0
    gaps: GapCounter = field(default_factory=GapCounter)
    sender_free_s: float = 0.0
    life: Life = field(init=False)
    _run: int = 0
    _run_start_s: float = 0.0
    _run_num: int = 0
    _pieces: list[int] = field(default_factory=list)
    _swap_s: float = 0.0
    """Time by which the first iteration of the run begins later, for swaps."""
    _is_running: bool = False

    def __post_init__(self) -> None:
        Batch.__post_init__(self)
        self.life = Life(self.ordered_s)

    @property
    def state(self) -> str:
        """State now."""
        return self.life.state

    @property
    def num_gaps(self) -> int:
        """Gaps between tokens written here."""
        return self.gaps.num

    @property
    def gap_sum_s(self) -> float:
        """Sum of these gaps."""
        return self.gaps.sum_s

    @property
    def gap_counts(self) -> list[int]:
        """Numbers of these gaps by their bins."""
        return self.gaps.counts

    def busy_until_s(self, now_s: float) -> float:
        """Time worked until now."""
        return self.busy_s + (self._swap_s + now_s - self._run_start_s if self._is_running else 0.0)

    def arrive(self, one: FleetRequest) -> None:
        """Let a request wait here; if it can be let in, cut the run."""
        self.waiting.append(one)
        self.due_tokens += one.to_read
        self._look()

    def _look(self) -> None:
        """Begin if it rests; cut a run of decoding if the first that waits can be let in."""
        if not self._is_running:
            self.begin()
        elif not self._pieces and self.waiting:
            used = self.memory.used + self._num_with_this() * len(self.writing)
            if self.fits(self.waiting[0], used):
                self._cut()

    def move_out(self) -> None:
        """Let requests be sent to other instances from the end of this iteration on."""
        self.moves_out = True
        if self._is_running and not self._pieces:
            self._cut()

    def stay(self) -> None:
        """Let requests stay here again."""
        self.moves_out = False

    def begin(self) -> None:
        """Let requests in, and run the next iterations as one event."""
        if self.moves_out:
            self._send_writing()
        self.let_in()
        self.make_room(self.clock.now)
        num_writing = len(self.writing)
        if self.reading:
            self._run_num = 1
            self._pieces = chunk_pieces(self.reading, self.engine.chunk_tokens - num_writing)
            tokens, products = sum(self._pieces), piece_products(self.reading, self._pieces)
            time_s = self.engine.times.mix_s(tokens, products, num_writing, self.context)
        elif num_writing:
            self._pieces = []
            left = min(one.request.output_tokens - one.written for one in self.writing)
            room = (self.engine.kv_capacity_tokens - self.memory.used) // num_writing
            self._run_num = min(left, room)
            time_s = self.engine.times.run_s(self._run_num, num_writing, self.context)
        else:
            self._is_running = False
            if not self.waiting:
                self.is_empty(self)
            return
        self._is_running = True
        self.memory.make_idle_fit(num_writing * self._run_num)
        self._swap_s = self.memory.take_swapping_s()
        self._run_start_s = self.clock.now + self._swap_s
        self._end_at(self._run_start_s + time_s)

    def _send_writing(self) -> None:
        self.writing = [one for one in self.writing if self.is_read(self, one)]
        self.context = sum(one.held for one in self.writing)

    def give_up(self) -> list[FleetRequest]:
        """Take everything away, as at the end of the time to drain; what was held is lost."""
        self._settle()
        given = [*self.writing, *self.reading, *self.waiting]
        for one in (*self.writing, *self.reading):
            self.memory.free(one)
        for one in given:
            one.num_restarts += one.to_read < one.held
            one.forget(self.clock.now)
        self.waiting.clear()
        self.reading, self.writing = [], []
        self.context = self.due_tokens = 0
        return given

    def release(self, one: FleetRequest) -> None:
        """Free the memory of a request that has been sent away."""
        self.memory.free(one)
        self.leaving -= one.held
        self._look()

    def _num_with_this(self) -> int:
        """Iterations of the run up to the end of the one that is running now."""
        elapsed_s = max(self.clock.now - self._run_start_s, 0.0)
        times, num_writing = self.engine.times, len(self.writing)
        return times.num_within(elapsed_s, self._run_num - 1, num_writing, self.context) + 1

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
        num = self._num_with_this()
        if num < self._run_num:
            self._run_num = num
            time_s = self.engine.times.run_s(num, len(self.writing), self.context)
            self._end_at(self._run_start_s + time_s)

    def _settle(self) -> None:
        """Keep what whole iterations have written, and drop the run."""
        if self._is_running and not self._pieces:
            elapsed_s = max(self.clock.now - self._run_start_s, 0.0)
            num = self.engine.times.num_within(
                elapsed_s, self._run_num, len(self.writing), self.context
            )
            for one in self.writing:
                one.written += num
                one.held += num
            self.memory.used += num * len(self.writing)
        self.busy_s = self.busy_until_s(self.clock.now)
        self._is_running = False
        self._pieces = []
        self._run += 1

    def _end(self) -> None:
        """Advance all that were in the batch; finished ones leave."""
        now, num = self.clock.now, self._run_num
        self.busy_s = self.busy_until_s(now)
        self._is_running = False
        if self.writing:
            self._write(num, now)
        if self._pieces:
            self._read(now)

    def _write(self, num: int, now: float) -> None:
        num_writing, times = len(self.writing), self.engine.times
        if self._pieces:
            first_s = last_s = now - self._run_start_s
            self.gaps.count(num_writing, first_s + self._swap_s)
        else:
            first_s = times.first_s(num_writing, self.context)
            last_s = times.first_s(num_writing, self.context + (num - 1) * num_writing)
            self.gaps.count(num_writing * num, (first_s + last_s) / 2)
        longest_s = max(last_s, first_s + self._swap_s) if self._swap_s else last_s
        self.memory.used += num * num_writing
        self.context += num * num_writing
        is_any_done = False
        for one in self.writing:
            one.written += num
            one.held += num
            if longest_s > one.longest_gap_s:  # noqa: PLR1730 - max() costs a call a request
                one.longest_gap_s = longest_s
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
            self.context -= one.held
            self._finish(one, now)
        self.writing = stay

    def _finish(self, one: FleetRequest, now: float) -> None:
        one.end_s = now
        self.memory.free(one)
        self.is_done(one)

    def _read(self, now: float) -> None:
        pieces, self._pieces = self._pieces, []
        num_read = 0
        for one, piece in zip(self.reading, pieces, strict=False):
            one.to_read -= piece
            self.due_tokens -= piece
            num_read += one.to_read == 0
        read, self.reading = self.reading[:num_read], self.reading[num_read:]
        self.memory.keep(read)
        for one in read:
            one.written += 1
            if one.first_token_s is None:
                one.first_token_s = now
                one.prompt_instance = self.number
            one.end_pause(now)
            if one.written == one.request.output_tokens:
                self._finish(one, now)
            elif self.is_read(self, one):
                one.token_instance = self.number
                self.writing.append(one)
                self.context += one.held
