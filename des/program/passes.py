"""Habits of trainers and runtimes, each a pass over a program's lists of operations."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from des.program.actions import COMPUTE, NONE, POST, SEND, WAIT, WAIT_SENT
from des.program.draft import share_lists
from des.program.program import OperationList, Program
from des.schedules import DeadlockError

ProgramPass = Callable[[Program], Program]
"""Returns a program of the same messages and passes, which adds or moves operations."""

Row = tuple[int, int, int]
"""An operation: action, port, item."""

Key = tuple[int, int]
"""A message: flow, item."""


def blocking_sends(program: Program) -> Program:
    """Let workers of pipelines do nothing until what they have sent has arrived."""
    own = {worker.operations for worker in program.workers}
    operations = (
        _with_waits(each) if number in own else each
        for number, each in enumerate(program.operations)
    )
    return replace(program, operations=tuple(operations))


@lru_cache(maxsize=4096)
def _with_waits(operations: OperationList) -> OperationList:
    """Put a wait for the arrival after each send."""
    sends = np.flatnonzero(operations.rows[:, 0] == SEND)
    waits = operations.rows[sends]
    waits[:, 0] = WAIT_SENT
    return OperationList(np.insert(operations.rows, sends + 1, waits, axis=0))


def receives_as_needed(program: Program) -> Program:
    """Post each receive where a worker waits for it, as torch's GPipe and 1F1B do."""
    lists = []
    for own in WorkerLists.of(program):
        posted = [
            [(POST, *row[1:]), row] if row[0] == WAIT and own.has_notice(row) else [row]
            for row in own.rows
        ]
        lists.append([row for rows in posted for row in rows])
    return with_lists(program, lists)


def receives_first(program: Program) -> Program:
    """Post all receives of an iteration at its start, those of a sender in its order."""
    all_lists = WorkerLists.of(program)
    posts: list[list[Row]] = [[] for _ in all_lists]
    place_of = receivers(program)
    for own in all_lists:
        for row in own.rows:
            if row[0] == SEND and own.has_notice(row):
                worker, port = place_of[own.flow(row)]
                posts[worker].append((POST, port, row[2]))
    return with_lists(
        program, [[*first, *own.rows] for first, own in zip(posts, all_lists, strict=True)]
    )


def receives_lowered(program: Program) -> Program:
    """Post receives where torch's lowering of orders of passes puts them.

    It goes round the workers and takes the next pass of each that has its input; a message that it
    makes is posted after what its receiver has been given by then [1]_.

    Raises
    ------
    DeadlockError
        If no worker has the input of its next pass.

    References
    ----------
    .. [1] PyTorch 2.13, torch/distributed/pipelining/schedules.py, ``_add_send_recv``.
    """
    all_lists, place_of = WorkerLists.of(program), receivers(program)
    found: list[list[Row]] = [[] for _ in all_lists]
    parts = [list(_passes(own.rows)) for own in all_lists]
    done, sent = [0] * len(parts), set[Key]()
    while open_workers := [worker for worker, own in enumerate(parts) if done[worker] < len(own)]:
        before = sum(done)
        for worker in open_workers:
            own, part = all_lists[worker], parts[worker][done[worker]]
            if any(own.key(row) not in sent for row in part if row[0] == WAIT):
                continue
            done[worker] += 1
            found[worker] += part
            for row in (row for row in part if row[0] == SEND):
                sent.add(own.key(row))
                if own.has_notice(row):
                    receiver, port = place_of[own.flow(row)]
                    found[receiver].append((POST, port, row[2]))
        if sum(done) == before:
            raise DeadlockError(
                f"program: deadlock, no input for the next pass of workers {open_workers}"
            )
    return with_lists(program, found)


def _passes(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Split a list into passes, each with the waits before it and the sends behind it."""
    part: list[Row] = []
    for row in rows:
        if row[0] != SEND and any(one[0] == COMPUTE for one in part):
            yield part
            part = []
        part.append(row)
    if part:
        yield part


class WorkerLists(NamedTuple):
    """The list of a worker, and its flows with those that have notices."""

    rows: list[Row]
    flows: tuple[int, ...]
    noticed: frozenset[int]

    @classmethod
    def of(cls, program: Program) -> list["WorkerLists"]:
        """Lists of all workers."""
        noticed = frozenset(
            number for number, flow in enumerate(program.flows) if flow.notice != NONE
        )
        rows = [list(map(tuple, each.rows.tolist())) for each in program.operations]
        return [cls(rows[each.operations], each.flows, noticed) for each in program.workers]

    def flow(self, row: Row) -> int:
        """Flow of an operation on a message."""
        return self.flows[row[1]]

    def key(self, row: Row) -> Key:
        """Message of an operation."""
        return self.flows[row[1]], row[2]

    def has_notice(self, row: Row) -> bool:
        """Whether the message of an operation waits for its receive to be posted."""
        return self.flows[row[1]] in self.noticed


def receivers(program: Program) -> dict[int, tuple[int, int]]:
    """Worker that receives each flow, and at which port."""
    return {
        own.flow(row): (worker, row[1])
        for worker, own in enumerate(WorkerLists.of(program))
        for row in own.rows
        if row[0] in (WAIT, POST)
    }


def with_lists(program: Program, lists: Sequence[Sequence[Row]]) -> Program:
    """Return the program with other lists of its workers; members of exchanges keep theirs."""
    made = share_lists(lists)
    kept = [program.operations[member.worker.operations] for member in program.members]
    number_of = {each: number for number, each in enumerate(dict.fromkeys([*made, *kept]))}
    return replace(
        program,
        operations=tuple(number_of),
        workers=tuple(
            worker._replace(operations=number_of[own])
            for worker, own in zip(program.workers, made, strict=True)
        ),
        members=tuple(
            member._replace(worker=member.worker._replace(operations=number_of[own]))
            for member, own in zip(program.members, kept, strict=True)
        ),
    )
