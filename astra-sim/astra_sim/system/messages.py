"""Messages: sends and receives are matched by (tag, source, target, size) in order of posting."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from astra_sim.core.events import EventQueue
from astra_sim.files.errors import AbortError
from astra_sim.network.links import AnalyticalNetwork, NetworkLink

Done = Callable[[Any], None]
Receive = tuple[Done, Any]
Message = list[Any]
"""Event of an arrival: action and argument."""
Key = tuple[int, int, int, int]
"""Tag, source, target and bytes of a message; all four must agree for a match."""

CONTROL_BYTES = 8192
CONTROL_TAG_OFFSET = 10**9
RENDEZVOUS_BYTES_LIMIT = 2**31
"""The original cuts sizes to 32 signed bits here: its times are then too short or absurdly long."""


class Messages:
    """The matcher of all NPUs.

    ``sends`` holds what is posted or delivered without a receive, ``receives`` what waits for a
    send; a key is in at most one of the two. What is alone under its key stands there itself,
    several stand in a deque. A message is the event of its arrival, which its receive changes; of
    one that is delivered without a receive no action is left.
    """

    __slots__ = ("_network", "_queue", "_receives", "_sends")

    def __init__(self, queue: EventQueue, network: AnalyticalNetwork) -> None:
        self._queue = queue
        self._network = network
        self._sends: dict[Key, Message | deque[Message]] = {}
        self._receives: dict[Key, Receive | deque[Receive]] = {}

    @property
    def has_sends(self) -> bool:
        """Whether there are messages that no receive has been posted for."""
        return bool(self._sends)

    @property
    def sends(self) -> dict[Key, tuple[Message, ...]]:
        """Messages that no receive has been posted for."""
        return _post(self._sends)

    @property
    def receives(self) -> dict[Key, tuple[Receive, ...]]:
        """Receives that no message has been sent for."""
        return _post(self._receives)

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
        waiting = self._receives.pop(key, None)
        if waiting is None:
            message: Message = [_land, None]
            message[1] = message if sent is None else (message, sent, argument)
            if sent is not None:
                message[0] = _land_and_tell
            first = self._sends.setdefault(key, message)
            if first is not message:
                self._sends[key] = _with(first, message)
            self._network.send(source, target, num_bytes, message)
            return
        if isinstance(waiting, deque):
            receive = waiting.popleft()
            if waiting:
                self._receives[key] = waiting
        else:
            receive = waiting
        if sent is not None:
            receive = _tell_both, (sent, argument, *receive)
        self._network.send(source, target, num_bytes, receive)

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
        action = message[0]
        if action is None:
            self._queue.at(self._queue.now, received, argument)
        elif action is _land:
            message[0] = received
            message[1] = argument
        else:
            _, sent, sent_argument = message[1]
            message[0] = _tell_both
            message[1] = sent, sent_argument, received, argument

    def has_tag(self, tag: int) -> bool:
        """Whether a message or a receive of a tag waits for the other."""
        return any(key[0] == tag for key in chain(self._sends, self._receives))

    def steady_delay_ns(self, source: int, target: int, num_bytes: int) -> int | None:
        """Time from posting a send to its delivery, if that is always the same."""
        return self._network.steady_delay_ns(source, target, num_bytes)

    def links(self, source: int, target: int) -> tuple[NetworkLink, ...]:
        """Links on which messages between two NPUs queue, if that is all they wait for."""
        return self._network.links(source, target)

    def hold(self, key: Key, messages: Sequence[Message], receives: Sequence[Receive]) -> None:
        """Have these posted under a key, and nothing else."""
        _hold(self._sends, key, messages)
        _hold(self._receives, key, receives)

    def rename(self, keys: Mapping[Key, Key]) -> None:
        """Give what is posted under these keys others of them."""
        _rename(self._sends, keys)
        _rename(self._receives, keys)

    def exchange(self, outgoing: Key, incoming: Key, received: Done) -> None:
        """Post a send without an end of its own, then a receive that calls ``received(None)``.

        Both sizes are equal, as in all collectives, which do little else. The same as two calls,
        written out for speed.

        Raises
        ------
        AbortError
            If the size is 0, or the network has no way.
        """
        _, source, target, num_bytes = outgoing
        if num_bytes <= 0:
            _refuse(outgoing)
        sends, receives = self._sends, self._receives
        arrival: Any = receives.pop(outgoing, None)
        if arrival is None:
            arrival = [_land, None]  # `unreceived` in place, for speed
            arrival[1] = arrival
            first = sends.setdefault(outgoing, arrival)
            if first is not arrival:
                sends[outgoing] = _with(first, arrival)
        elif arrival.__class__ is deque:
            held, arrival = arrival, arrival.popleft()
            if held:
                receives[outgoing] = held
        self._network.send(source, target, num_bytes, arrival)
        message: Any = sends.pop(incoming, None)
        if message is None:
            receive = received, None
            waiting = receives.setdefault(incoming, receive)
            if waiting is not receive:
                receives[incoming] = _with(waiting, receive)
        elif message.__class__ is list and message[0] is _land:
            message[0] = received
            message[1] = None
        elif message.__class__ is list and message[0] is None:
            self._queue.at(self._queue.now, received, None)
        else:
            sends[incoming] = message
            self.post_receive(incoming, received)


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

    def steady_delay_ns(self, source: int, target: int, num_bytes: int) -> int | None:
        """None: a send waits for its receiver."""
        return None

    def links(self, source: int, target: int) -> tuple[()]:
        """None: a send waits for its receiver."""
        return ()

    def exchange(self, outgoing: Key, incoming: Key, received: Done) -> None:
        """Post the send, then the receive, both for when the other side is ready."""
        self.post_send(outgoing)
        self.post_receive(incoming, received)

    def _start(self, posted: tuple[Key, Done | None, Any]) -> None:
        super().post_send(*posted)

    def _await(self, posted: tuple[Key, Done, Any]) -> None:
        super().post_receive(*posted)


def unreceived() -> Message:
    """Make a message that no receive has been posted for and no sender waits for."""
    message: Message = [_land, None]
    message[1] = message
    return message


def _land(message: Message) -> None:
    """Deliver a message that no receive has been posted for and no sender waits for."""
    message[0] = message[1] = None


def _land_and_tell(posted: tuple[Message, Done, Any]) -> None:
    """Complete the sender, then the receiver if the sender has posted the receive by that."""
    message, sent, argument = posted
    sent(argument)
    if message[0] is _land_and_tell:
        message[0] = message[1] = None
    else:
        _, _, received, received_argument = message[1]
        received(received_argument)


def _tell_both(posted: tuple[Done, Any, Done, Any]) -> None:
    """Complete the sender, then the receiver."""
    sent, sent_argument, received, received_argument = posted
    sent(sent_argument)
    received(received_argument)


def _control(key: Key) -> Key:
    tag, source, target, num_bytes = key
    if num_bytes >= RENDEZVOUS_BYTES_LIMIT:
        raise AbortError(
            f"message {source}->{target}: with rendezvous must have less than "
            f"{RENDEZVOUS_BYTES_LIMIT} bytes, as the original cuts sizes to 32 signed bits, "
            f"got {num_bytes}"
        )
    return tag + CONTROL_TAG_OFFSET, target, source, CONTROL_BYTES


def _post(posts: Mapping[Key, Any]) -> dict[Key, tuple[Any, ...]]:
    return {key: tuple(held) if isinstance(held, deque) else (held,) for key, held in posts.items()}


def _rename(posts: dict[Key, Any], keys: Mapping[Key, Key]) -> None:
    posts.update({keys[key]: posts.pop(key) for key in keys if key in posts})


def _hold(posts: dict[Key, Any], key: Key, items: Sequence[Any]) -> None:
    posts.pop(key, None)
    if items:
        posts[key] = deque(items) if len(items) > 1 else items[0]


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
