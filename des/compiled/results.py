"""Results of a compiled run, in the form of the readable engine."""

from functools import partial

import numpy as np

from des.compiled.flows import Marks
from des.compiled.kernels.program import State
from des.compiled.operations import operation_columns
from des.compiled.program import Lowered
from des.costs.feasibility import peaks_of_plan
from des.costs.memory import memory_of_peaks
from des.costs.update_times import update_s
from des.engine.result import IterationResult, LinkUse, Span, StageUse, Transfer
from des.job.workload import Workload
from des.plan.corrections import Corrections
from des.plan.plan import Plan
from des.world.topology import Topology

_new_span = partial(tuple.__new__, Span)
_new_transfer = partial(tuple.__new__, Transfer)
"""Same as `_make`, without a call of Python code for each of thousands."""


def iteration_result(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    lowered: Lowered,
    state: State,
    *,
    corrections: Corrections,
) -> IterationResult:
    """Sum up a run that ended well and was recorded."""
    peaks = peaks_of_plan(workload, plan, lowered.orders)
    makespan_s = makespan_of_run_s(
        topology, workload, plan, lowered, state, corrections=corrections
    )
    stages = tuple(
        StageUse(
            domain=topology.domains[stage.domain].name,
            device=stage.device,
            first_layer=stage.first_layer,
            num_layers=stage.num_layers,
            busy_s=busy_s,
            idle_s=makespan_s - busy_s,
        )
        for stage, busy_s in zip(plan.stages, state.stages["busy_s"].tolist(), strict=True)
    )
    return IterationResult(
        makespan_s=makespan_s,
        utilisation=workload.flops_per_iteration / (topology.peak_flops_per_s * makespan_s),
        stages=stages,
        links=_link_uses(topology, state),
        memory=memory_of_peaks(topology, workload, plan, peaks),
        spans=_spans(lowered, state),
        transfers=_transfers(lowered, state),
    )


def makespan_of_run_s(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    lowered: Lowered,
    state: State,
    *,
    corrections: Corrections,
) -> float:
    """Time of a run that ended well, its update included. [s]"""
    end_s = float(state.outcome["end_s"][0])
    if not lowered.program.header["num_late"][0]:
        end_s += update_s(topology, workload, plan, corrections)
    return end_s


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


def _spans(lowered: Lowered, state: State) -> tuple[Span, ...]:
    kinds, microbatches, stages = operation_columns(lowered.orders)
    starts_s, ends_s = state.spans["start_s"].tolist(), state.spans["end_s"].tolist()
    rows = zip(stages, kinds, microbatches, starts_s, ends_s, strict=True)
    return tuple(map(_new_span, rows))


def _transfers(lowered: Lowered, state: State) -> tuple[Transfer, ...]:
    """All transfers, link by link; those of a link stay in the order in which they left."""
    found = state.transfers[: int(state.outcome["num_transfers"][0])]
    found = found[np.argsort(found["link"], kind="stable")]
    marks: Marks = lowered.marks
    flows = lowered.program.flow_of["flow"][found["message"]]
    later = found["message"] - marks.first_messages[flows]
    columns = (
        found["link"],
        marks.stages[flows],
        marks.kinds[flows],
        marks.microbatches[flows] + later * marks.microbatch_steps[flows],
        found["start_s"],
        found["end_s"],
        found["arrival_s"],
    )
    rows = zip(*(one.tolist() for one in columns), strict=True)
    return tuple(map(_new_transfer, rows))
