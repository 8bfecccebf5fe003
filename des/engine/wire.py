"""One direction of a link whose messages leave one after the other, or each as if alone."""

from typing import NamedTuple

from des.costs.connection_window import WindowFigures, window_after_idle, windowed_delay_s
from des.costs.start_up import rested_bytes, start_up_s
from des.dynamics.link_course import moving_serialisation_end_s
from des.engine.conditions import Conditions
from des.engine.gate import Gate, gated_end_s


class Passage(NamedTuple):
    """Times of a message on a link: it starts, its last byte has left, it has arrived."""

    start_s: float
    end_s: float
    arrival_s: float


class Window:
    """A connection's congestion window, the round trip that it is in, and when it sent last."""

    __slots__ = ("figures", "left_s", "memory")

    def __init__(self, figures: WindowFigures) -> None:
        self.figures = figures
        self.memory = figures.most_bytes, -figures.round_trip_s, 0.0
        self.left_s = 0.0

    def delay_s(self, start_s: float, num_bytes: float) -> float:
        """Delay of a message that begins to leave. [s]"""
        window_bytes, *others = self.memory
        window_bytes = window_after_idle(self.figures, window_bytes, start_s - self.left_s)
        memory = window_bytes, others[0], others[1]
        delay_s, self.memory = windowed_delay_s(self.figures, memory, start_s, num_bytes)
        return delay_s

    def pass_time(self, time_s: float) -> None:
        """Count times from a later start."""
        window_bytes, round_start_s, used_bytes = self.memory
        self.memory = window_bytes, round_start_s - time_s, used_bytes
        self.left_s -= time_s


class Turn:
    """Time from which a medium is free: one direction, or both where they share it."""

    __slots__ = ("free_at_s",)

    def __init__(self) -> None:
        self.free_at_s = 0.0


class Wire:
    """Bytes leave first come, first served; latencies overlap; messages arrive in order.

    A first-come-first-served queue needs no process: who asks later leaves later, so the time when
    the medium is free is all there is to remember, and what is left of ``gates``. Where there are
    no queues (``turn`` is None) nothing is: every message leaves and arrives as if it were alone.
    """

    __slots__ = (
        "_began_bytes",
        "_conditions",
        "_gates",
        "_known_bytes",
        "_last_arrival_s",
        "_left_s",
        "_overhead_s",
        "_start_up",
        "_steady",
        "_turn",
        "_window",
        "busy_s",
        "num_bytes",
        "num_messages",
    )

    def __init__(
        self,
        conditions: Conditions,
        turn: Turn | None,
        gates: tuple[Gate, ...] = (),
        window: Window | None = None,
    ) -> None:
        self._conditions = conditions
        self._gates = gates
        self._steady = None if gates else conditions.steady
        self._overhead_s = conditions.message_overhead_s
        self._start_up = conditions.start_up
        self._turn = turn
        self._window = window
        self._last_arrival_s = self._left_s = 0.0
        self._began_bytes = self._known_bytes = 0.0
        self.busy_s = 0.0
        self.num_bytes = 0.0
        self.num_messages = 0

    def carry(self, ready_s: float, num_bytes: float) -> Passage:
        """Send a message that is ready; where they queue, calls must come in order of ``ready_s``.

        Raises
        ------
        StarvationError
            If the link is down for ever before the last byte has left.
        """
        turn, offer = self._turn, self._steady
        start_s = ready_s if turn is None else max(turn.free_at_s, ready_s)
        before_s, behind_s = self._delays_s(start_s, num_bytes)
        for gate in self._gates:
            gate.forget(ready_s)
        if offer is None:
            end_s = self._end_s(start_s + before_s, num_bytes)
            offer = self._conditions.at(end_s)
        else:  # the same without a search for the border
            end_s = start_s + before_s + num_bytes / offer.goodput_bytes_per_s
        arrival_s = end_s + (offer.latency_s + behind_s)
        if turn is not None:
            arrival_s = max(arrival_s, self._last_arrival_s)
            turn.free_at_s = end_s
            self._last_arrival_s = arrival_s
        self._left_s = end_s
        if self._window is not None:
            self._window.left_s = end_s
        self.busy_s += end_s - start_s
        self.num_bytes += num_bytes
        self.num_messages += 1
        return Passage(start_s, end_s, arrival_s)

    def _delays_s(self, start_s: float, num_bytes: float) -> tuple[float, float]:
        """Time that a message spends on the wire before its bytes, and behind them in flight.

        A reused connection starts up while later messages wait, a fresh one concurrently. [s]
        """
        start_up = self._start_up
        if self._window is not None:
            return self._overhead_s + self._window.delay_s(start_s, num_bytes), 0.0
        if start_up is None:
            return self._overhead_s, 0.0
        if self._known_bytes > 0.0 and start_s - self._left_s >= start_up.round_s:
            self._known_bytes = rested_bytes(start_up, self._began_bytes, self._known_bytes)
            self._began_bytes = self._known_bytes
        delay_s = start_up_s(start_up, self._known_bytes, num_bytes)
        self._known_bytes += num_bytes
        if start_up.is_reused:
            return self._overhead_s + delay_s, 0.0
        return self._overhead_s, delay_s

    def _end_s(self, start_s: float, num_bytes: float) -> float:
        conditions = self._conditions
        if self._gates:
            return gated_end_s(
                start_s, num_bytes, conditions.goodput_at, self._gates, owner=conditions.name
            )
        return moving_serialisation_end_s(
            start_s, num_bytes, conditions.goodput_at, owner=conditions.name
        )
