"""Devices at work while an iteration runs, and the wires between those of a domain."""

from des.clock import Message
from des.engine.network import Send


class Queue:
    """GPUs that serve one worker after the other, first come, first served.

    Such a queue needs no process, see `des.engine.wire.Wire`.
    """

    __slots__ = ("_free_at_s",)

    def __init__(self) -> None:
        self._free_at_s = 0.0

    def take(self, duration_s: float, *, ready_s: float) -> tuple[float, float]:
        """Take a turn when all earlier ones are over; returns start and end. [s]"""
        start_s = max(ready_s, self._free_at_s)
        self._free_at_s = start_s + duration_s
        return start_s, self._free_at_s


def local_way(queue: Queue | None, transfer_s: float, latency_s: float) -> Send:
    """Return what passes messages on over a wire inside a domain; None: they do not queue."""

    def send(message: Message, ready_s: float) -> None:
        end_s = ready_s + transfer_s
        if queue is not None:
            _, end_s = queue.take(transfer_s, ready_s=ready_s)
        message.happen_at(end_s + latency_s)

    return send
