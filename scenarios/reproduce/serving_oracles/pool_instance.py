"""An instance of a pool: works wait, a batch of them runs, a run of token iterations can be cut."""

import math
from bisect import bisect_right, insort_right
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter

from des.clock import Clock
from scenarios.reproduce.serving_oracles.courses import IterationTable, call_at
from scenarios.reproduce.serving_oracles.pool_batches import BatchLimits, pick_orca, pick_splitwise
from scenarios.reproduce.serving_oracles.pool_works import PhaseWork, RequestState

_ARRIVAL = attrgetter("request.arrival_s")


@dataclass(slots=True, eq=False, kw_only=True)
class PoolInstance:
    """One instance, its lists and what it has in its memory.

    ``finish`` is called for each work that is finished, before the next iteration begins;
    ``become_idle`` when nothing is present.
    """

    number: int
    pool: str | None
    clock: Clock
    times: IterationTable
    limits: BatchLimits
    is_orca: bool
    capacity_bytes: float
    used_bytes: float
    finish: "Callable[[PoolInstance, PhaseWork], None]"
    become_idle: "Callable[[PoolInstance], None]"
    promised_bytes: float = 0.0
    due_tokens: int = 0
    load: int = 0
    waiting: list[PhaseWork] = field(default_factory=list)
    waiting_prompts: list[PhaseWork] = field(default_factory=list)
    halted: list[PhaseWork] = field(default_factory=list)
    present: list[RequestState] = field(default_factory=list)
    batch: list[PhaseWork] = field(default_factory=list)
    busy_s: float = 0.0
    num_begun: int = 0
    _run_start_s: float = 0.0
    _iteration_s: float = 0.0
    _num_iterations: int = 0
    _can_be_cut: bool = False
    _run: int = 0

    def waits(self, work: PhaseWork) -> int:
        """Iterations begun without a work that was current."""
        return work.waits if work.counts_from < 0 else self.num_begun - work.counts_from

    def arrive(self, work: PhaseWork) -> None:
        """Let a work wait here; begin an iteration or cut the run where the rules say so."""
        state = work.state
        if work.is_prompt or state.prompt_place != self.number:
            insort_right(self.present, state, key=_ARRIVAL)
        if state.current is work:
            work.counts_from = self.num_begun - work.waits
        self._join_waiting(work)
        if work.is_prompt:
            self.waiting_prompts.append(work)
        if not self.batch:
            if self.used_bytes + work.memory_bytes <= self.capacity_bytes:
                self.begin()
        elif self._is_let_in(work):
            self.cut()

    def look_up(self) -> None:
        """Use memory that has become free: begin an iteration, or cut the run."""
        if not self.waiting:
            return
        if not self.batch:
            if self.used_bytes + self.waiting[0].memory_bytes <= self.capacity_bytes:
                self.begin()
        elif len(self.batch) < self.limits.max_batch_size and (
            self.is_orca or self.load < self.limits.max_batch_tokens
        ):
            self.cut()

    def begin(self) -> None:
        """Pick a batch and run it, all iterations that need no other decision as one event."""
        self._change_batch()
        self.num_begun += 1
        batch = self.batch
        if not batch:
            if not self.present:
                self.become_idle(self)
            return
        now = self.clock.now
        for work in batch:
            if not work.is_started:
                work.start(now)
                self.used_bytes += work.memory_bytes
        tokens = sum(work.cost for work in batch)
        num_prompts = sum(work.is_prompt for work in batch)
        has_prompt = num_prompts > 0
        if not self.is_orca:
            self.load = tokens
        self._iteration_s = self.times.iteration_s(
            tokens, has_prompt=has_prompt, has_token=num_prompts < len(batch)
        )
        self._run_start_s = now
        self._can_be_cut = not has_prompt
        self._end_after(1 if has_prompt else min(work.left for work in batch))

    def cut(self) -> None:
        """End a run of token iterations after the iteration that is running now."""
        if not self._can_be_cut:
            return
        self._can_be_cut = False
        elapsed_s = self.clock.now - self._run_start_s
        self._end_after(math.floor(elapsed_s / self._iteration_s) + 1)

    def _is_let_in(self, work: PhaseWork) -> bool:
        """Whether a work that arrives during a run cuts it."""
        limits = self.limits
        if len(self.batch) < limits.max_batch_size and (
            self.is_orca or self.load + work.cost <= limits.max_batch_tokens
        ):
            return True
        if self.is_orca or not work.is_prompt:
            return False
        num_tokens = sum(not other.is_prompt for other in self.batch)
        return num_tokens > 0 and self.load - num_tokens + work.cost <= limits.max_batch_tokens

    def _key(self, work: PhaseWork) -> tuple[int, float]:
        return self.waits(work), work.state.request.arrival_s

    def _join_waiting(self, work: PhaseWork) -> None:
        if self.is_orca:
            self.waiting.append(work)
        else:
            place = bisect_right(self.waiting, self._key(work), key=self._key)
            self.waiting.insert(place, work)

    def _change_batch(self) -> None:
        """Pick the next batch; halt works that drop out, take in those that join."""
        pick = pick_orca if self.is_orca else pick_splitwise
        picked = pick(self, self.limits, self.capacity_bytes - self.used_bytes)
        old = self.batch
        if picked == old:
            return
        stay = set(picked)
        for work in old:
            if work not in stay:
                self._halt(work)
        self.batch = [work for work in old if work in stay]
        for work in picked:
            if not work.in_batch:
                self._take(work)
                self.batch.append(work)

    def _take(self, work: PhaseWork) -> None:
        work.waits, work.counts_from, work.in_batch = self.waits(work), -1, True
        self.waiting.remove(work)
        if work.is_prompt:
            self.waiting_prompts.remove(work)
        if work.is_halted:
            self.halted.remove(work)
            work.is_halted = False
            work.blocked_s += self.clock.now - work.halted_at_s

    def _halt(self, work: PhaseWork) -> None:
        work.in_batch, work.is_halted = False, True
        work.halted_at_s = self.clock.now
        work.state.is_preempted = True
        work.counts_from = self.num_begun - work.waits
        self._join_waiting(work)
        self.halted.append(work)

    def _end_after(self, num_iterations: int) -> None:
        self._run += 1
        self._num_iterations = num_iterations
        run = self._run

        def end() -> None:
            if run == self._run:
                self._end()

        call_at(self.clock, self._run_start_s + num_iterations * self._iteration_s, end)

    def _end(self) -> None:
        """Advance the batch; finished works leave in its order, then the next iteration begins."""
        now, num = self.clock.now, self._num_iterations
        self.busy_s += now - self._run_start_s
        finished = []
        for work in self.batch:
            work.left -= num
            if work.left <= 0:
                finished.append(work)
        if finished:
            self.batch = [work for work in self.batch if work.left > 0]
        for work in finished:
            work.in_batch = False
            state = work.state
            if work.is_prompt:
                state.first_token_s = now
                state.current = state.token
                state.token.counts_from = self.num_begun - state.token.waits
            else:
                state.end_s = now
            if not work.is_prompt or state.token_place != self.number:
                self.present.remove(state)
            self.finish(self, work)
        self.begin()
