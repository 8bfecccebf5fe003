"""Messages: sends and receives are matched by (tag, source, target, size) in order of posting."""

from collections import deque
from collections.abc import Callable
from typing import Any

from astra_sim.core.events import EventQueue
from astra_sim.files.errors import AbortError
from astra_sim.network.interface import AnalyticalNetwork

Done = Callable[[Any], None]
Receive = tuple[Done, Any]
Key = tuple[int, int, int, int]
"""Tag, source, target and bytes of a message; all four must agree for a match."""

CONTROL_BYTES = 8192
CONTROL_TAG_OFFSET = 10**9
RENDEZVOUS_BYTES_LIMIT = 2**31
"""The original cuts sizes to 32 signed bits here: its times are then too short or absurdly long."""


class RankMessage:
    """A posted send and, once matched, the receive that waits for it."""

    __slots__ = ("argument", "delivered", "received", "sent")

    def __init__(self, sent: Done | None, argument: Any) -> None:
        self.sent = sent
        self.argument = argument
        self.received: Receive | None = None
        self.delivered = False


class Messages:
    """The matcher of all NPUs.

    ``sends`` holds what is posted or delivered without a receive, ``receives`` what waits for a
    send; a key is in at most one of the two. What is alone under its key stands there itself,
    several stand in a deque.
    """

    __slots__ = ("_network", "_queue", "_receives", "_sends")

    def __init__(self, queue: EventQueue, network: AnalyticalNetwork) -> None:
        self._queue = queue
        self._network = network
        self._sends: dict[Key, RankMessage | deque[RankMessage]] = {}
        self._receives: dict[Key, Receive | deque[Receive]] = {}

    @property
    def sends(self) -> dict[Key, tuple[RankMessage, ...]]:
        """Messages that no receive has been posted for."""
        return {
            key: tuple(held) if isinstance(held, deque) else (held,)
            for key, held in self._sends.items()
        }

    @property
    def receives(self) -> dict[Key, tuple[Receive, ...]]:
        """Receives that no message has been sent for."""
        return {
            key: tuple(held) if isinstance(held, deque) else (held,)
            for key, held in self._receives.items()
        }

    def post_send(self, key: Key, sent: Done | None = None, argument: Any = None) -> None:
        """Start a transfer; ``sent(argument)`` is called at its delivery.

        Raises
        ------
        AbortError
            If the tag is negative, the size 0, or the network has no way.
        """
        tag, source, target, num_bytes = key
        if num_bytes <= 0 or tag < 0:
            _refuse(key)
        message = RankMessage(sent, argument)
        waiting = self._receives.pop(key, None)
        if waiting is None:
            first = self._sends.setdefault(key, message)
            if first is not message:
                self._sends[key] = _with(first, message)
        elif isinstance(waiting, deque):
            message.received = waiting.popleft()
            if waiting:
                self._receives[key] = waiting
        else:
            message.received = waiting
        self._network.send(source, target, num_bytes, _deliver, message)

    def post_receive(self, key: Key, received: Done, argument: Any = None) -> None:
        """Wait for a message; ``received(argument)`` is called at its delivery.

        If it has been delivered already, the call comes at the end of the current tick.

        Raises
        ------
        AbortError
            If the tag is negative or the size 0.
        """
        if key[3] <= 0 or key[0] < 0:
            _refuse(key)
        message = self._sends.pop(key, None)
        if message is None:
            receive = received, argument
            first = self._receives.setdefault(key, receive)
            if first is not receive:
                self._receives[key] = _with(first, receive)
            return
        if isinstance(message, deque):
            posted, message = message, message.popleft()
            if posted:
                self._sends[key] = posted
        if message.delivered:
            self._queue.at(self._queue.now, received, argument)
        else:
            message.received = received, argument


class RendezvousMessages(Messages):
    """Messages that start only once the receiver has told the sender that it is ready.

    Posting a receive sends a control message to the sender; posting a send waits for one.
    """

    __slots__ = ()

    def post_send(self, key: Key, sent: Done | None = None, argument: Any = None) -> None:
        """Post the send for when the receiver's control message has come."""
        super().post_receive(_control(key), self._start, (key, sent, argument))

    def post_receive(self, key: Key, received: Done, argument: Any = None) -> None:
        """Send the control message; the receive itself is posted at its delivery."""
        super().post_send(_control(key), self._await, (key, received, argument))

    def _start(self, posted: tuple[Key, Done | None, Any]) -> None:
        super().post_send(*posted)

    def _await(self, posted: tuple[Key, Done, Any]) -> None:
        super().post_receive(*posted)


def _deliver(message: RankMessage) -> None:
    """Complete the sender, then the receiver if it has been posted."""
    if message.sent is not None:
        message.sent(message.argument)
    if message.received is not None:
        done, argument = message.received
        done(argument)
    else:
        message.delivered = True


def _control(key: Key) -> Key:
    tag, source, target, num_bytes = key
    if num_bytes >= RENDEZVOUS_BYTES_LIMIT:
        raise AbortError(
            f"message {source}->{target}: with rendezvous must have less than "
            f"{RENDEZVOUS_BYTES_LIMIT} bytes, as the original cuts sizes to 32 signed bits, "
            f"got {num_bytes}"
        )
    return tag + CONTROL_TAG_OFFSET, target, source, CONTROL_BYTES


def _with(held: Any, item: Any) -> deque[Any]:
    """Items of one key with another at their end."""
    if isinstance(held, deque):
        held.append(item)
        return held
    return deque((held, item))


def _refuse(key: Key) -> None:
    tag, source, target, num_bytes = key
    raise AbortError(
        f"message {source}->{target}: size must be positive and tag not negative, "
        f"got {num_bytes} bytes with tag {tag}"
    )
