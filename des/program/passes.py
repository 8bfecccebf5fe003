"""Habits of trainers and runtimes, each a pass over a program's lists of operations."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from des.program.actions import SEND, WAIT_SENT
from des.program.program import OperationList, Program

ProgramPass = Callable[[Program], Program]
"""Returns a program of the same messages and passes, which adds or moves operations."""


def blocking_sends(program: Program) -> Program:
    """Let workers of pipelines do nothing until what they have sent has arrived."""
    return _rewritten(program, _with_waits)


@lru_cache(maxsize=4096)
def _with_waits(operations: OperationList) -> OperationList:
    """Put a wait for the arrival behind each send."""
    sends = np.flatnonzero(operations.rows[:, 0] == SEND)
    waits = operations.rows[sends]
    waits[:, 0] = WAIT_SENT
    return OperationList(np.insert(operations.rows, sends + 1, waits, axis=0))


def _rewritten(program: Program, rewrite: Callable[[OperationList], OperationList]) -> Program:
    """Return the program with other lists of its workers; members of exchanges keep theirs."""
    own = {worker.operations for worker in program.workers}
    operations = (
        rewrite(each) if number in own else each for number, each in enumerate(program.operations)
    )
    return replace(program, operations=tuple(operations))
