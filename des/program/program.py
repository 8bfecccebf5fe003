"""An iteration as lists of operations over numbers and names, which engines run.

An operation is three numbers: an action, a port and an item. Ports are of the worker that does it
(`des.program.actions`):

- `COMPUTE`: pass ``port % 4`` of `PASSES`, of its stage ``port // 4``, over microbatch ``item``.
- `WAIT`: until message ``item`` of its flow ``port`` has arrived here.
- `SEND`: message ``item`` of its flow ``port``; the worker goes on at once.
- `WAIT_SENT`: until message ``item`` of its flow ``port``, which it has sent, has arrived there.
- `REDUCE`: half an all-reduce among the GPUs of its device, which does one at a time.
- `POST`: the receive of message ``item`` of its flow ``port``, of which the sender gets a notice.
- `WAIT_TAKEN`: until message ``item`` of its flow ``port``, which it has sent, leaves or has left.

So workers that behave alike share one list, however many there are.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from des.base.strict_json import parse_json
from des.costs.memory import DomainMemory, GpuMemory
from des.program.actions import NONE

_FORMAT = "eastwest program 2"


@dataclass(frozen=True, slots=True, eq=False)
class OperationList:
    """Operations in order, shaped (number of operations, 3): action, port and item.

    A list is equal to itself alone, so that what follows from it can be remembered.
    """

    rows: np.ndarray

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or self.rows.shape[1] != 3:
            raise ValueError(
                f"program: operations must be rows of 3 numbers, got shape {self.rows.shape}"
            )
        self.rows.flags.writeable = False


class Worker(NamedTuple):
    """One that does a list of operations in order, on a device that others may share."""

    operations: int
    device: int
    stages: tuple[int, ...]
    flows: tuple[int, ...]


class ExchangeMember(NamedTuple):
    """A device's part in an exchange of a bucket of gradients.

    It begins when the last pass of the stages of its ``group`` has but ``left_fraction`` to go, and
    without a group (`NONE`) after the step. A `REDUCE` of its takes ``reduce_s``.
    """

    worker: Worker
    group: int
    left_fraction: float
    reduce_s: float


class StageEntry(NamedTuple):
    """A stage: its name, the times of its passes, and when its gradients are complete.

    ``domain_device`` counts in the domain. ``kept_bytes`` is what each GPU of the device keeps of
    one microbatch, for the input gradient and for the weight gradient. ``durations_s`` are in the
    order of `PASSES`. The stages of a ``group`` release their exchanges together, when each has
    made ``num_gradients``.
    """

    domain: str
    domain_device: int
    first_layer: int
    num_layers: int
    kept_bytes: tuple[float, float]
    durations_s: tuple[float, ...]
    group: int
    num_gradients: int


class Channel(NamedTuple):
    """Way on which messages follow each other: links, a wire inside a domain, or a device.

    ``route`` holds positions of links; ``wire`` numbers the one of two devices of a domain, one
    direction. Where there is neither, messages stay on their device.
    """

    route: tuple[int, ...] = ()
    wire: int = NONE


class MessageFlow(NamedTuple):
    """Messages of equal size from one worker to one other; all are numbered flow by flow.

    A ``channel`` of `NONE` says that they are never sent. ``sender`` is a device. A message takes
    what links need for ``num_bytes``, or ``transfer_s`` and then ``latency_s`` of a wire.
    Transfers are marked by ``stage``, ``kind`` and a microbatch: ``label``, and as many more as
    messages came before, times ``label_step``.

    A message leaves when it has been sent. With ``notice``, a flow of as many messages that leads
    back, it also waits for its own of those: the notice that its receive is posted (rendezvous).
    """

    channel: int
    num_messages: int
    sender: int = NONE
    num_bytes: float = 0.0
    transfer_s: float = 0.0
    latency_s: float = 0.0
    stage: int = NONE
    kind: str = ""
    label: int = 0
    label_step: int = 1
    notice: int = NONE


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """One iteration of a job, or messages that it sends between two, without its plan.

    Attributes
    ----------
    operations
        Lists, each once.
    workers, members
        Workers of the pipelines, and members of exchanges, those after the step last.
    channels, flows
        Ways, and messages on them.
    num_devices
        Devices, numbered from 0.
    has_queues
        Whether messages on a wire inside a domain wait for each other.
    update_s
        Time of the optimiser's step. [s]
    links
        Links of the world by the positions of their domains, which positions in routes mean.
    memory
        Memory that each domain must hold at most, and has.
    devices
        What a GPU of each device holds at all times.
    useful_flops, peak_flops_per_s
        Work of the iteration that counts, and peak of all GPUs of the world. [FLOP, FLOP/s]
    """

    operations: tuple[OperationList, ...]
    workers: tuple[Worker, ...]
    members: tuple[ExchangeMember, ...] = ()
    stages: tuple[StageEntry, ...] = ()
    channels: tuple[Channel, ...]
    flows: tuple[MessageFlow, ...]
    num_devices: int
    has_queues: bool
    update_s: float = 0.0
    links: tuple[tuple[int, int], ...]
    memory: tuple[DomainMemory, ...] = ()
    devices: tuple[GpuMemory, ...] = ()
    useful_flops: float = 0.0
    peak_flops_per_s: float = 0.0

    def __post_init__(self) -> None:
        for worker in (*self.workers, *(member.worker for member in self.members)):
            for field, numbers, count in (
                ("operations", (worker.operations,), len(self.operations)),
                ("stages", worker.stages, len(self.stages)),
                ("flows", worker.flows, len(self.flows)),
                ("device", (worker.device,), self.num_devices),
            ):
                if numbers and not (max(numbers) < count and min(numbers) >= NONE):
                    raise ValueError(
                        f"program: {field} of a worker must be below {count}, got {numbers}"
                    )
        for flow in self.flows:
            if flow.notice != NONE and not (
                0 <= flow.notice < len(self.flows)
                and self.flows[flow.notice].num_messages == flow.num_messages
            ):
                raise ValueError(
                    f"program: notice of a flow must be a flow of {flow.num_messages} messages, "
                    f"got {flow.notice}"
                )

    @cached_property
    def has_rendezvous(self) -> bool:
        """Whether messages of some flow leave only when their receive is posted."""
        return any(flow.notice != NONE for flow in self.flows)

    @cached_property
    def num_late(self) -> int:
        """Members, the last ones, that begin when everything else and the update are done."""
        return sum(member.group == NONE for member in self.members)

    def check_links(self, links: Iterable[tuple[int, int]]) -> None:
        """Refuse a world whose links are not those that positions in routes mean."""
        if self.links != tuple(links):
            raise ValueError(
                f"program: the world must have the {len(self.links)} links that it was lowered "
                "for, got other ones"
            )

    def with_update_s(self, end_s: float) -> float:
        """End of the iteration, whose last operation ends at some time. [s]"""
        return end_s if self.num_late else end_s + self.update_s

    def to_bytes(self) -> bytes:
        """Write it as one compressed line of JSON; equal programs give equal bytes."""
        content: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        content["operations"] = [each.rows.ravel().tolist() for each in self.operations]
        content["memory"] = [asdict(each) for each in self.memory]
        text = json.dumps({"format": _FORMAT, **content}, separators=(",", ":"))
        return zlib.compress(text.encode(), level=9)

    @classmethod
    def from_bytes(cls, content: bytes) -> "Program":
        """Read what `to_bytes` wrote.

        Raises
        ------
        ValueError
            If it did not, or parts are missing.
        """
        try:
            found = parse_json(zlib.decompress(content).decode())
            if not isinstance(found, dict) or found.pop("format") != _FORMAT:
                raise ValueError("of another format")
            for name, make in _ROWS.items():
                found[name] = tuple(map(make, found[name]))
            return cls(**found)
        except (zlib.error, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"program: bytes must be of {_FORMAT}, got others: {error}") from error


def _worker(row: Any) -> Worker:
    operations, device, stages, flows = row
    return Worker(operations, device, tuple(stages), tuple(flows))


_ROWS: Mapping[str, Callable[[Any], object]] = MappingProxyType(
    {
        "operations": lambda row: OperationList(np.array(row, np.int32).reshape(-1, 3)),
        "workers": _worker,
        "members": lambda row: ExchangeMember(_worker(row[0]), *row[1:]),
        "stages": lambda row: StageEntry(*row[:4], *map(tuple, row[4:6]), *row[6:]),
        "channels": lambda row: Channel(tuple(row[0]), row[1]),
        "flows": lambda row: MessageFlow(*row),
        "links": tuple,
        "memory": lambda row: DomainMemory(**row),
        "devices": lambda row: GpuMemory(*row),
    }
)
"""Makers of what a program holds many of, from rows of JSON."""
