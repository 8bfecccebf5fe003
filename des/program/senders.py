"""Passes that let senders wait until what they have sent is taken, where receives are posted."""

from collections.abc import Iterator, Sequence

from des.program.actions import COMPUTE, PASSES, POST, SEND, WAIT_TAKEN
from des.program.passes import Row, WorkerLists, with_lists
from des.program.program import Program


def senders_wait_each(program: Program) -> Program:
    """Let workers wait after each send."""
    return with_lists(
        program,
        [
            [one for row in own.rows for one in (row, *_waits([row] if _is_held(own, row) else []))]
            for own in WorkerLists.of(program)
        ],
    )


def senders_wait_at_end(program: Program) -> Program:
    """Let workers wait for all their sends at the end of the iteration."""
    return with_lists(
        program,
        [
            [*own.rows, *_waits([row for row in own.rows if _is_held(own, row)])]
            for own in WorkerLists.of(program)
        ],
    )


def senders_wait_in_step(program: Program) -> Program:
    """Let workers wait as torch's GPipe and 1F1B do.

    1F1B hands a send and a receive of the other direction over as a pair and waits for both; else
    it waits for a send before the next one. GPipe, where all forward passes come first, waits at
    the end of each half [1]_.

    References
    ----------
    .. [1] PyTorch 2.13, torch/distributed/pipelining/schedules.py, ``ScheduleGPipe``,
       ``Schedule1F1B``.
    """
    all_lists = WorkerLists.of(program)
    in_halves = all(_is_flushed(own.rows) for own in all_lists)
    wait = _in_halves if in_halves else _in_pairs
    return with_lists(program, [list(wait(own)) for own in all_lists])


def _is_held(own: WorkerLists, row: Row) -> bool:
    return row[0] == SEND and own.has_notice(row)


def _waits(sends: Sequence[Row]) -> list[Row]:
    return [(WAIT_TAKEN, *row[1:]) for row in sends]


def _is_forward(row: Row) -> bool:
    """Whether an operation is a forward pass, or its message comes with one; others are backward.

    Ports of a stage are those of activations in, gradients in, activations out, gradients out.
    """
    kind = row[1] % len(PASSES)
    return kind == 0 if row[0] == COMPUTE else kind % 2 == 0


def _is_flushed(rows: Sequence[Row]) -> bool:
    """Whether all forward passes come before all others."""
    passes = [_is_forward(row) for row in rows if row[0] == COMPUTE]
    return passes == sorted(passes, reverse=True)


def _in_halves(own: WorkerLists) -> Iterator[Row]:
    """Wait where the backward passes begin, and at the end."""
    halves = (
        [row for row in own.rows if _is_forward(row)],
        [row for row in own.rows if not _is_forward(row)],
    )
    for rows in halves:
        yield from rows
        yield from _waits([row for row in rows if _is_held(own, row)])


def _in_pairs(own: WorkerLists) -> Iterator[Row]:
    """Wait together with a receive of the other direction, else after the next pass."""
    waits: list[Row] = []
    for place, row in enumerate(own.rows):
        yield row
        before = own.rows[place - 1] if place else row
        if _is_held(own, row):
            waits += _waits([row])
        is_pair = row[0] == POST and _is_held(own, before)
        if row[0] == COMPUTE or (is_pair and _is_forward(before) != _is_forward(row)):
            yield from waits
            waits = []
    yield from waits
