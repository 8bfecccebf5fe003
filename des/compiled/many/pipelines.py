"""Pipelines of replicas side by side, each as if alone: when the last pass of every stage runs."""

from des.base.jit import kernel
from des.compiled.kernels.intrinsics import views_of
from des.compiled.many.desk import FREE, STAGE_ROWS, START, Desk, rows_of
from des.compiled.many.family_layout import PassTimes
from des.compiled.many.layout import Whole
from des.compiled.many.paced import Paces
from des.compiled.many.recurrence import num_alike, run_block
from des.compiled.many.steady import Job, Plans


@kernel
def last_passes(
    desk: Desk,
    job: Job,
    paces: Paces,
    pipelines: Plans,
    counts: Whole,
    ordered: Whole,
    passes: PassTimes,
) -> None:
    """Write the last passes of pipelines at some positions, those alike in a row."""
    rows, task, tempos, drawn = rows_of(desk), views_of(job), views_of(paces), views_of(pipelines)
    shares, order, out = views_of(counts), views_of(ordered), views_of(passes)
    begin = 0
    while begin < order.size:
        size = num_alike(drawn, shares, order, begin, order.size)
        run_block(rows, task, tempos, drawn, shares, order, begin, size, False)
        for stage in range(drawn.num_stages[order[begin]]):
            at = stage * STAGE_ROWS
            for lane in range(size):
                pipeline = order[begin + lane]
                out.start_s[pipeline, stage] = rows.stages[at + START, lane]
                out.end_s[pipeline, stage] = rows.stages[at + FREE, lane]
        begin += size
