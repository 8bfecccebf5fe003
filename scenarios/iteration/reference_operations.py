"""Operations of the ranks of the reference runtime, as rows of cells like those of torch."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from des.program.actions import COMPUTE, POST, SEND, WAIT, WAIT_TAKEN
from des.program.passes import Row, WorkerLists, receivers
from des.program.program import Program, Worker

_ACTIONS = {POST: "RECV", WAIT: "WAIT", SEND: "SEND", WAIT_TAKEN: "SENT"}
_PASSES, _MESSAGES = "FBIW", "FBFB"
_PORTS = 4
"""Ports of a stage: activations in, gradients in, activations out, gradients out."""
_CELL = re.compile(r"([0-9]{1,6})(?:(RECV|WAIT|SEND|SENT)_([FB])|([FBIW]))([0-9]{1,6})")


class RuntimeOperation(NamedTuple):
    """One operation of a rank, written as ``1RECV_F3`` or, of a pass, ``1F3``.

    ``action`` is ``RECV`` (post a receive), ``WAIT`` (until it has come), ``SEND``, ``SENT`` (wait
    until it is taken) or, of a pass, empty. Messages are of activations (F) or gradients (B), and
    ``stage`` is the one that sends or receives.
    """

    stage: int
    action: str
    kind: str
    microbatch: int

    def __str__(self) -> str:
        joint = "_" if self.action else ""
        return f"{self.stage}{self.action}{joint}{self.kind}{self.microbatch}"


RankOperations = tuple[RuntimeOperation, ...]


def operations_of(program: Program, workers: Sequence[int]) -> tuple[RankOperations, ...]:
    """Return the operations of workers, a rank each.

    Receives that wait for no notice, inside a site, are posted first, in the order of the senders.

    Raises
    ------
    ValueError
        If a worker waits for the arrival of what it sends.
    """
    all_lists, place_of = WorkerLists.of(program), receivers(program)
    posts: list[list[RuntimeOperation]] = [[] for _ in all_lists]
    for worker, own in enumerate(all_lists):
        for row in own.rows:
            receiver, port = place_of.get(own.flow(row), (worker, 0))
            if row[0] == SEND and receiver != worker and not own.has_notice(row):
                posts[receiver].append(_of_row(program.workers[receiver], (POST, port, row[2])))
    return tuple(
        (*posts[one], *(_of_row(program.workers[one], row) for row in all_lists[one].rows))
        for one in workers
    )


def _of_row(worker: Worker, row: Row) -> RuntimeOperation:
    action, port, item = row
    stage, number = worker.stages[port // _PORTS], port % _PORTS
    if action == COMPUTE:
        return RuntimeOperation(stage, "", _PASSES[number], item)
    if action not in _ACTIONS:
        raise ValueError("plan: sends must be overlapped in the reference runtime, got blocking")
    return RuntimeOperation(stage, _ACTIONS[action], _MESSAGES[number], item)


def operations_text(operations: Sequence[RankOperations]) -> str:
    """Write a row for each rank.

    Examples
    --------
    >>> operations_text([(RuntimeOperation(1, "RECV", "F", 0), RuntimeOperation(1, "", "F", 0))])
    '1RECV_F0,1F0\\n'
    """
    return "".join(",".join(map(str, own)) + "\n" for own in operations)


def read_operations(text: str, source: str) -> tuple[RankOperations, ...]:
    """Read the operations of all ranks.

    Raises
    ------
    ValueError
        Naming the file, the row, what is allowed and what came.
    """
    return tuple(
        tuple(_read_row(row, f"{source}: row {number}"))
        for number, row in enumerate(text.splitlines())
    )


def _read_row(row: str, owner: str) -> Iterator[RuntimeOperation]:
    for cell in row.split(","):
        match = _CELL.fullmatch(cell)
        if match is None:
            raise ValueError(
                f"{owner} must have cells such as 0F3, 1I2 or 1RECV_F3, of RECV, WAIT, SEND and "
                f"SENT; got {cell!r}"
            )
        yield RuntimeOperation(int(match[1]), match[2] or "", match[3] or match[4], int(match[5]))
