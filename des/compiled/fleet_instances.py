"""An instance whose requests are in arrays, with the rules of `FleetInstance`."""

import math
from dataclasses import dataclass, field

from des.clock import Clock
from des.compiled.kernels.fleet_batches import (
    NONE,
    EngineNumbers,
    InstanceArrays,
    RequestArrays,
    whole_within,
)
from des.serving.fleet_settings import Engine
from des.serving.instance_life import Life


@dataclass(slots=True, eq=False, kw_only=True)
class ArrayInstance:
    """One instance at a place of the arrays; without a place once it has stopped."""

    number: int
    pool: str
    engine: Engine
    ordered_s: float
    ready_s: float
    clock: Clock
    place: int
    numbers: EngineNumbers
    requests: RequestArrays
    arrays: InstanceArrays
    next_pool: str | None = None
    active_s: float | None = None
    drained_from_s: float | None = None
    stopped_s: float | None = None
    life: Life = field(init=False)
    _left: tuple[float, int, float, list[int]] | None = None

    def __post_init__(self) -> None:
        self.life = Life(self.ordered_s)

    @property
    def has_place(self) -> bool:
        """Whether it has its place in the arrays."""
        return self._left is None

    @property
    def state(self) -> str:
        """State now."""
        return self.life.state

    @property
    def num_waiting(self) -> int:
        """Requests that hold no memory."""
        return 0 if self._left else int(self.arrays.num_waiting[self.place])

    @property
    def present(self) -> int:
        """Requests here."""
        if self._left:
            return 0
        q, i = self.arrays, self.place
        return int(q.num_waiting[i] + q.num_reading[i] + q.num_writing[i])

    @property
    def due_tokens(self) -> int:
        """Prompt tokens that are not read yet."""
        return 0 if self._left else int(self.arrays.due[self.place])

    @property
    def used(self) -> int:
        """Tokens in KV memory."""
        return 0 if self._left else int(self.arrays.used[self.place])

    @property
    def leaving(self) -> int:
        """Tokens of requests whose KV memory is being sent away."""
        return 0 if self._left else int(self.arrays.leaving[self.place])

    @property
    def num_gaps(self) -> int:
        """Gaps between tokens written here."""
        return self._left[1] if self._left else int(self.arrays.num_gaps[self.place])

    @property
    def gap_sum_s(self) -> float:
        """Sum of these gaps."""
        return self._left[2] if self._left else float(self.arrays.gap_sum_s[self.place])

    @property
    def gap_counts(self) -> list[int]:
        """Numbers of these gaps by their bins."""
        if self._left:
            return self._left[3]
        counts: list[int] = self.arrays.gap_counts[self.place].tolist()
        return counts

    def busy_until_s(self, now_s: float) -> float:
        """Time worked until now."""
        if self._left:
            return self._left[0]
        q, i = self.arrays, self.place
        busy_s = float(q.busy_s[i])
        return busy_s if q.run_end_s[i] == math.inf else busy_s + (now_s - float(q.run_start_s[i]))

    def leave_place(self) -> int:
        """Keep the totals, and free the place for another instance."""
        self._left = (self.busy_until_s(0.0), self.num_gaps, self.gap_sum_s, self.gap_counts)
        q, i = self.arrays, self.place
        for array in q:
            array[i] = 0
        q.run_end_s[i] = math.inf
        return i

    def _list(self, first: int, num: int) -> list[int]:
        found, one = [], first
        for _ in range(num):
            found.append(int(one))
            one = self.requests.follower[one]
        return found

    def _waiting(self) -> list[int]:
        return self._list(self.arrays.first_waiting[self.place], self.num_waiting)

    def _held(self) -> list[int]:
        """Requests that are written, then those that are read."""
        q, i = self.arrays, self.place
        writing = [int(one) for one in q.writing[i, : q.num_writing[i]]]
        return writing + self._list(q.first_reading[i], q.num_reading[i])

    def tokens_present(self) -> tuple[int, int]:
        """Tokens that all requests here hold or will read, and the least that one has written."""
        present, r = [*self._held(), *self._waiting()], self.requests
        return int(r.held[present].sum()), int(r.written[present].min())

    def give_waiting(self) -> list[int]:
        """Take away the requests of which nothing is read yet."""
        q, r, i = self.arrays, self.requests, self.place
        waiting = self._waiting()
        given = [one for one in waiting if r.to_read[one]]
        stay = [one for one in waiting if not r.to_read[one]]
        for one, after in zip(stay, [*stay[1:], NONE], strict=False):
            r.follower[one] = after
        if stay:
            q.first_waiting[i], q.last_waiting[i] = stay[0], stay[-1]
        q.num_waiting[i] = len(stay)
        q.due[i] -= sum(int(r.to_read[one]) for one in given)
        return given

    def give_up(self) -> list[int]:
        """Take all requests away; what was held is lost."""
        q, r, i, now_s = self.arrays, self.requests, self.place, self.clock.now
        held, given = self._held(), [*self._held(), *self._waiting()]
        if q.run_end_s[i] != math.inf:
            self._settle(now_s)
        q.used[i] -= sum(int(r.held[one]) for one in held)
        for one in given:
            r.restarts[one] += int(r.to_read[one] < r.held[one])
            if r.written[one] and r.last_token_s[one] < 0:
                r.last_token_s[one] = now_s
            r.to_read[one] = r.held[one] = r.prompt[one] + r.written[one]
        for counts in (q.num_waiting, q.num_reading, q.num_writing, q.context, q.due):
            counts[i] = 0
        return given

    def _settle(self, now_s: float) -> None:
        """Keep what whole iterations have written, and drop the run."""
        q, r, i = self.arrays, self.requests, self.place
        num_writing, start_s = int(q.num_writing[i]), float(q.run_start_s[i])
        if not q.num_pieces[i]:
            num = whole_within(
                self.numbers, now_s - start_s, int(q.run_num[i]), num_writing, int(q.context[i])
            )
            writing = q.writing[i, :num_writing]
            r.written[writing] += num
            r.held[writing] += num
            q.used[i] += num * num_writing
        q.busy_s[i] += now_s - start_s
        q.run_end_s[i], q.num_pieces[i] = math.inf, 0

    def move_out(self) -> None:
        """Refuse: such worlds are not simulated in compiled code."""
        raise ValueError("compiled fleet: drain_moves_out must be False, got True")

    def stay(self) -> None:
        """Keep requests here, as always."""

    def forget_prefixes(self) -> None:
        """Drop nothing: there is no prefix cache."""
