"""Flows of a program: messages of the same sender, receiver, size and way."""

from typing import NamedTuple

import numpy as np

from des.compiled.kernels.program import FLOW, FLOW_OF, HOP, LINKS, LOCAL_WIRE, SAME_DEVICE
from des.schedules import Border

NO_ENDPOINT = -1


class Marks(NamedTuple):
    """Mark of the transfers of a flow: sender, pass and microbatch.

    The microbatch is that of the first message; the next ones have the next ones, or all the same.
    """

    stages: np.ndarray
    kinds: np.ndarray
    first_messages: np.ndarray
    microbatches: np.ndarray
    microbatch_steps: np.ndarray


class Mark(NamedTuple):
    """Marks of one flow."""

    stage: int
    kind: str
    microbatch: int = 0
    microbatch_step: int = 1


_UNSEEN = Mark(NO_ENDPOINT, "")
"""Mark of messages that take no link."""


class Flows:
    """Flows as they are found, in order; their messages are numbered flow by flow."""

    def __init__(self) -> None:
        self._records: list[tuple[float, ...]] = []
        self._marks: list[Mark] = []
        self._counts: list[int] = []
        self._hops: list[int] = []
        self._local_wires: dict[tuple[int, int], int] = {}

    def add_links(
        self,
        route: tuple[int, ...],
        num_bytes: float,
        mark: Mark,
        *,
        num_messages: int,
        endpoint: int,
        receiver: int = NO_ENDPOINT,
        sender: int = NO_ENDPOINT,
    ) -> None:
        """Add messages over links."""
        where = (LINKS, len(self._hops), len(route))
        self._hops += route
        self._add((*where, receiver, sender, endpoint, num_bytes, 0.0, 0.0), num_messages, mark)

    def add_local(
        self,
        devices: tuple[int, int],
        border: Border,
        *,
        num_messages: int,
        receiver: int,
        sender: int = NO_ENDPOINT,
    ) -> None:
        """Add messages between devices of a domain, whose flows of one direction share a wire."""
        where = (LOCAL_WIRE, self._local_wires.setdefault(devices, len(self._local_wires)), 0)
        delays = (border.transfer_s, border.latency_s)
        self._add((*where, receiver, sender, NO_ENDPOINT, 0.0, *delays), num_messages)

    def add_stay(
        self, *, num_messages: int, receiver: int = NO_ENDPOINT, sender: int = NO_ENDPOINT
    ) -> None:
        """Add messages that stay on their device, or numbers of messages that are never sent."""
        self._add((SAME_DEVICE, 0, 0, receiver, sender, NO_ENDPOINT, 0.0, 0.0, 0.0), num_messages)

    def _add(self, record: tuple[float, ...], num_messages: int, mark: Mark = _UNSEEN) -> None:
        self._records.append(record)
        self._counts.append(num_messages)
        self._marks.append(mark)

    @property
    def num_messages(self) -> int:
        """Messages of all flows so far."""
        return sum(self._counts)

    @property
    def num_local_wires(self) -> int:
        """Wires inside domains."""
        return len(self._local_wires)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Flows, the flow of each message, and hops."""
        numbers = np.arange(len(self._records))
        return (
            np.array(self._records, FLOW),
            np.repeat(numbers, self._counts).view(FLOW_OF),
            np.array(self._hops or [NO_ENDPOINT]).view(HOP),
        )

    def marks(self) -> Marks:
        """Marks of the transfers."""
        stages, kinds, microbatches, steps = map(np.array, zip(*self._marks, strict=True))
        return Marks(stages, kinds, np.cumsum(self._counts) - self._counts, microbatches, steps)
