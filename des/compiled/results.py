"""Results of a compiled run, in the form of the readable engine."""

from functools import lru_cache, partial
from typing import Any

import numpy as np

from des.compiled.kernels.program import ProgramArrays, State
from des.engine.result import IterationResult, LinkUse, Span, Transfer
from des.program.actions import COMPUTE, PASSES
from des.program.program import OperationList, Program
from des.world.topology import Topology

_new_span = partial(tuple.__new__, Span)
_new_transfer = partial(tuple.__new__, Transfer)
"""Same as `_make`, without a call of Python code for each of thousands."""


def iteration_result(
    topology: Topology, program: Program, arrays: ProgramArrays, state: State
) -> IterationResult:
    """Sum up a run that ended well; spans and transfers are those of one that was recorded."""
    is_recorded = bool(arrays.header["is_recorded"][0])
    return IterationResult.of_program(
        program,
        float(state.outcome["end_s"][0]),
        state.stages["busy_s"].tolist(),
        links=_link_uses(topology, state),
        spans=_spans(program, state) if is_recorded else (),
        transfers=_transfers(program, arrays, state) if is_recorded else (),
    )


def _link_uses(topology: Topology, state: State) -> tuple[LinkUse, ...]:
    figures = state.links[["num_messages", "num_bytes", "busy_s"]].tolist()
    return tuple(
        LinkUse(
            source=link.source,
            target=link.target,
            num_messages=num_messages,
            num_bytes=num_bytes,
            busy_s=busy_s,
        )
        for link, (num_messages, num_bytes, busy_s) in zip(topology.links, figures, strict=False)
    )


def _spans(program: Program, state: State) -> tuple[Span, ...]:
    lists = tuple(program.operations[worker.operations] for worker in program.workers)
    marks = _span_marks(lists, tuple(worker.stages for worker in program.workers))
    times_s = (state.spans[name].tolist() for name in ("start_s", "end_s"))
    return tuple(map(_new_span, zip(*marks, *times_s, strict=True)))


@lru_cache(maxsize=256)
def _span_marks(
    lists: tuple[OperationList, ...], stages_of: tuple[tuple[int, ...], ...]
) -> tuple[tuple[Any, ...], ...]:
    """Stages, kinds and microbatches of all passes, worker by worker."""
    marks = [
        (stages[port // len(PASSES)], PASSES[port % len(PASSES)], item)
        for own, stages in zip(lists, stages_of, strict=True)
        for action, port, item in own.rows.tolist()
        if action == COMPUTE
    ]
    return tuple(zip(*marks, strict=True))


def _transfers(program: Program, arrays: ProgramArrays, state: State) -> tuple[Transfer, ...]:
    """All transfers, link by link; those of a link stay in the order in which they left."""
    found = state.transfers[: int(state.outcome["num_transfers"][0])]
    found = found[np.argsort(found["link"], kind="stable")]
    flows = arrays.flow_of["flow"][found["message"]]
    marks = zip(*(each[6:10] for each in program.flows), strict=True)
    stages, kinds, labels, label_steps = map(np.array, marks)
    counts = [flow.num_messages for flow in program.flows]
    later = found["message"] - (np.cumsum(counts) - counts)[flows]
    columns = (
        found["link"],
        stages[flows],
        kinds.astype(np.object_)[flows],
        labels[flows] + later * label_steps[flows],
        found["start_s"],
        found["end_s"],
        found["arrival_s"],
    )
    rows = zip(*(one.tolist() for one in columns), strict=True)
    return tuple(map(_new_transfer, rows))
