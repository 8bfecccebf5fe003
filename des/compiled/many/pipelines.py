"""Pipelines of replicas side by side, each as if alone: when the last pass of every stage runs."""

from des.base.jit import kernel
from des.compiled.kernels.intrinsics import views_of
from des.compiled.many.family_layout import PassTimes
from des.compiled.many.layout import Whole
from des.compiled.many.paced import CountedPlans
from des.compiled.many.pipeline_scratch import (
    FREE,
    STAGE_ROWS,
    START,
    PipelineScratch,
    scratch_rows,
)
from des.compiled.many.recurrence import num_alike, run_block


@kernel
def last_passes(
    scratch: PipelineScratch, pipelines: CountedPlans, ordered: Whole, passes: PassTimes
) -> None:
    """Write the last passes of pipelines at some positions, those alike in a row."""
    rows, batch, order, out = (
        scratch_rows(scratch),
        views_of(pipelines),
        views_of(ordered),
        views_of(passes),
    )
    begin = 0
    while begin < order.size:
        size = num_alike(batch, order, begin, order.size)
        run_block(rows, batch, order, begin, size, False)
        for stage in range(batch.plans.num_stages[order[begin]]):
            at = stage * STAGE_ROWS
            for lane in range(size):
                pipeline = order[begin + lane]
                out.start_s[pipeline, stage] = rows.stages[at + START, lane]
                out.end_s[pipeline, stage] = rows.stages[at + FREE, lane]
        begin += size
