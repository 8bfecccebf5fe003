"""The memory bus between an NPU (end A) and its network card (end B), as a LogGP model.

Without it a local move lasts the endpoint delay. With it every move crosses the bus from one end
to the other, where it may be reduced and sent back. A transfer costs its sender ``o`` and ``G`` a
byte, its receiver ``L + o`` more; ``g`` keeps the transfers of one sender apart.

References
----------
.. [1] A. Alexandrov, M. F. Ionescu, K. E. Schauser and C. Scheiman, "LogGP: incorporating long
   messages into the LogP model", J. Parallel Distrib. Comput. 44(1), 1997.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any

from astra_sim.core.events import Timers
from astra_sim.files.errors import AbortError
from astra_sim.files.system_config import SharedBusConfig

INNER_NS_PER_BYTE = 0.0038
"""``G`` of the bus inside end A, in double precision; its other parameters are the outer ones."""

MAX_BURST = 8
"""An end that has sent more than this in a row gives way to a partner that has not."""

MESSAGE_BYTES_LIMIT = 2**31
"""The original keeps sizes on its bus in 32 signed bits: from here on it aborts, stalls or errs."""

BASE_REDUCTION_NS = 50
BYTES_PER_REDUCTION_STEP = 100

Continuation = Callable[["_Move"], None]


class SharedBus:
    """The bus of one NPU; all its times are timers of that NPU."""

    __slots__ = ("_a", "_b", "_rank")

    def __init__(self, timers: Timers, config: SharedBusConfig) -> None:
        self._rank = timers.rank
        inner = _join_ends(timers, config, INNER_NS_PER_BYTE, None)
        self._a, self._b = _join_ends(timers, config, config.gap_ns_per_byte, inner)

    def move(
        self,
        *,
        from_a: bool,
        num_bytes: int,
        reduces: bool,
        back: bool,
        done: Callable[[Any], None],
        argument: Any,
    ) -> None:
        """Carry bytes to the other end, then call ``done(argument)``.

        There they are reduced if the move ``reduces``; if it goes ``back`` they return to the end
        where they came from before the move is done.

        Raises
        ------
        AbortError
            If the bytes do not fit into 32 signed bits.
        """
        if num_bytes >= MESSAGE_BYTES_LIMIT:
            raise AbortError(
                f"sys[{self._rank}], model-shared-bus: messages must have less than "
                f"{MESSAGE_BYTES_LIMIT} bytes, as the original counts them in 32 signed bits, "
                f"got {num_bytes}"
            )
        move = _Move(num_bytes, reduces, back, done, argument)
        (self._a if from_a else self._b).request(move)


class _Move:
    """Transfer over a bus; the flags are cleared once they have been heeded."""

    __slots__ = ("argument", "back", "done", "num_bytes", "reduces")

    def __init__(
        self, num_bytes: int, reduces: bool, back: bool, done: Callable[[Any], None], argument: Any
    ) -> None:
        self.num_bytes = num_bytes
        self.reduces = reduces
        self.back = back
        self.done = done
        self.argument = argument


class _State(Enum):
    FREE = 0
    SENDING = 1
    RECEIVING = 2


def _join_ends(
    timers: Timers,
    config: SharedBusConfig,
    ns_per_byte: float,
    inner: "tuple[_End, _End] | None",
) -> "tuple[_End, _End]":
    """Make a bus: end A, which owns the inner bus if there is one, and end B."""
    a = _End(timers, config, ns_per_byte, inner)
    b = _End(timers, config, ns_per_byte, None)
    a.partner, b.partner = b, a
    return a, b


class _End:
    """One end of a bus: it sends, receives and reduces.

    A receive may begin while this end still sends; its state is then that of what began last, as
    in the original, which keeps a single one. That takes a bus without latency and overhead, where
    a transfer may overtake another; its arrival then ends the older of the two.
    """

    partner: "_End"

    def __init__(
        self,
        timers: Timers,
        config: SharedBusConfig,
        ns_per_byte: float,
        inner: "tuple[_End, _End] | None",
    ) -> None:
        self._timers = timers
        self._config = config
        self._ns_per_byte = ns_per_byte
        self._inner = inner
        self._state = self._previous = _State.FREE
        self._last_ns = 0
        self._burst = 0
        self._sends: deque[_Move] = deque()
        self._arrivals: deque[_Move] = deque()
        self._processing: deque[_Move] = deque()

    def request(self, move: _Move) -> None:
        """Take a move that begins here; an inner bus must be crossed first, outwards."""
        if self._inner is not None:
            inwards = _Move(move.num_bytes, False, False, self._crossed_to_send, move)
            self._inner[1].request(inwards)
        else:
            self._crossed_to_send(move)

    def _check(self) -> None:
        """Start the next send, unless it is the partner's turn."""
        if self._state is not _State.FREE or not self._sends:
            return
        partner = self.partner
        if self._burst > MAX_BURST and partner._sends and partner._burst <= MAX_BURST:
            if partner._state is _State.FREE:
                partner._check()
        else:
            self._start_send()

    def _start_send(self) -> None:
        config, timers = self._config, self._timers
        overhead_ns = config.overhead_ns
        offset_ns = overhead_ns
        if self._previous is _State.SENDING:
            elapsed_ns = timers.queue.now - self._last_ns
            if overhead_ns + elapsed_ns <= config.gap_ns:
                offset_ns = config.gap_ns - elapsed_ns
        move = self._sends.popleft()
        send_ns = offset_ns + (move.num_bytes - 1) * self._ns_per_byte
        if send_ns <= -1:  # rounding is towards 0
            raise AbortError(
                f"sys[{timers.rank}], shared bus: a transfer must not take -1 ns or less, "
                f"got {send_ns!r} for {move.num_bytes} bytes"
            )
        self.partner._receive(move, int(send_ns + config.latency_ns + overhead_ns))
        self._state = _State.SENDING
        timers.after(int(send_ns), self._sent)

    def _receive(self, move: _Move, delay_ns: int) -> None:
        self._arrivals.append(move)
        self._previous = self._state
        self._state = _State.RECEIVING
        self._burst = 0
        self._timers.after(delay_ns, self._received)

    def _sent(self, _: Any) -> None:
        self._last_ns = self._timers.queue.now
        self._previous = self._state
        self._state = _State.FREE
        self._burst += 1
        self._check()

    def _received(self, _: Any) -> None:
        move = self._arrivals.popleft()
        self._last_ns = self._timers.queue.now
        self._previous = self._state
        if not self._arrivals:
            self._state = _State.FREE
        if move.reduces:
            move.reduces = False
            self._cross_inner(move, True, self._process, self._crossed_to_process)
        else:
            self._go_on(move)
        self._check()

    def _process(self, move: _Move) -> None:
        self._processing.append(move)
        if len(self._processing) == 1:
            self._start_reduction()

    def _start_reduction(self) -> None:
        steps = self._processing[0].num_bytes // BYTES_PER_REDUCTION_STEP
        reduction_ns = steps * self._config.local_reduction_delay + BASE_REDUCTION_NS
        self._timers.after(reduction_ns, self._processed)

    def _processed(self, _: Any) -> None:
        move = self._processing[0]
        self._go_on(move)
        self._processing.popleft()
        if self._processing:
            self._start_reduction()
        self._check()

    def _go_on(self, move: _Move) -> None:
        """Send a move back, or finish it."""
        if move.back:
            move.back = False
            self._cross_inner(move, True, self._sends.append, self._crossed_to_send)
        else:
            self._cross_inner(move, False, _finish, self._crossed_to_finish)

    def _cross_inner(
        self, move: _Move, back: bool, now: Continuation, crossed: Continuation
    ) -> None:
        """Continue at once, or by way of the inner bus, inwards and perhaps back."""
        if self._inner is None:
            now(move)
        else:
            self._inner[0].request(_Move(move.num_bytes, False, back, crossed, move))

    def _crossed_to_send(self, move: _Move) -> None:
        self._sends.append(move)
        self._check()

    def _crossed_to_process(self, move: _Move) -> None:
        self._process(move)
        self._check()

    def _crossed_to_finish(self, move: _Move) -> None:
        _finish(move)
        self._check()


def _finish(move: _Move) -> None:
    move.done(move.argument)
