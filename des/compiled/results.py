"""Results of a compiled run, in the form of the readable engine."""

from functools import partial

import numpy as np

from des.compiled.kernels.program import ProgramArrays, State
from des.engine.result import IterationResult, LinkUse, Span, StageUse, Transfer
from des.program.program import COMPUTE, PASSES, Program
from des.world.topology import Topology

_new_span = partial(tuple.__new__, Span)
_new_transfer = partial(tuple.__new__, Transfer)
"""Same as `_make`, without a call of Python code for each of thousands."""


def iteration_result(
    topology: Topology, program: Program, arrays: ProgramArrays, state: State
) -> IterationResult:
    """Sum up a run that ended well and was recorded."""
    makespan_s = makespan_of_run_s(program, state)
    stages = tuple(
        StageUse(
            domain=stage.domain,
            device=stage.domain_device,
            first_layer=stage.first_layer,
            num_layers=stage.num_layers,
            busy_s=busy_s,
            idle_s=makespan_s - busy_s,
        )
        for stage, busy_s in zip(program.stages, state.stages["busy_s"].tolist(), strict=True)
    )
    return IterationResult(
        makespan_s=makespan_s,
        utilisation=program.useful_flops / (program.peak_flops_per_s * makespan_s),
        stages=stages,
        links=_link_uses(topology, state),
        memory=program.memory,
        spans=_spans(program, arrays, state),
        transfers=_transfers(program, arrays, state),
    )


def makespan_of_run_s(program: Program, state: State) -> float:
    """Time of a run that ended well, its update included. [s]"""
    end_s = float(state.outcome["end_s"][0])
    return end_s if program.num_late else end_s + program.update_s


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


def _spans(program: Program, arrays: ProgramArrays, state: State) -> tuple[Span, ...]:
    work = arrays.operations["work"]
    lists = [program.operations[worker.operations].rows for worker in program.workers]
    passes = np.concatenate([each[each[:, 0] == COMPUTE] for each in lists])
    kinds = np.array(PASSES)[work % len(PASSES)]
    columns = (
        work // len(PASSES),
        kinds,
        passes[:, 2],
        state.spans["start_s"],
        state.spans["end_s"],
    )
    return tuple(map(_new_span, zip(*(one.tolist() for one in columns), strict=True)))


def _transfers(program: Program, arrays: ProgramArrays, state: State) -> tuple[Transfer, ...]:
    """All transfers, link by link; those of a link stay in the order in which they left."""
    found = state.transfers[: int(state.outcome["num_transfers"][0])]
    found = found[np.argsort(found["link"], kind="stable")]
    flows = arrays.flow_of["flow"][found["message"]]
    marks = [each[-4:] for each in program.flows]
    stages, kinds, labels, label_steps = map(np.array, zip(*marks, strict=True))
    counts = [flow.num_messages for flow in program.flows]
    later = found["message"] - (np.cumsum(counts) - counts)[flows]
    columns = (
        found["link"],
        stages[flows],
        kinds[flows],
        labels[flows] + later * label_steps[flows],
        found["start_s"],
        found["end_s"],
        found["arrival_s"],
    )
    rows = zip(*(one.tolist() for one in columns), strict=True)
    return tuple(map(_new_transfer, rows))
