"""Pipelines of replicas side by side, each as if alone: when the last pass of every stage runs."""

from des.base.jit import kernel
from des.compiled.kernels.intrinsics import LANES, larger, load, splat, store, vector_rows, views_of
from des.compiled.kernels.lanes import STAGE_BUSY, STAGE_FREE, STAGE_ROWS, Lanes
from des.compiled.many.family_layout import PassTimes, PipelinePrograms
from des.compiled.many.layout import Whole
from des.compiled.many.plain_lanes import fill_plain_lanes, run_row
from des.compiled.many.steady import Job, Plans


@kernel
def last_passes(
    lanes: Lanes,
    job: Job,
    programs: PipelinePrograms,
    pipelines: Plans,
    ordered: Whole,
    starts: Whole,
    passes: PassTimes,
) -> None:
    """Write the last passes of pipelines; those of program ``g`` are from ``starts[g]`` on.

    ``ordered`` are positions of pipelines; what it leaves out is not written.
    """
    desk, task, table, rows = (
        views_of(lanes),
        views_of(job),
        views_of(programs),
        views_of(pipelines),
    )
    order, begins, out = views_of(ordered), views_of(starts), views_of(passes)
    for program in range(begins.size - 1):
        num_stages = table.num_stages[program]
        for begin in range(begins[program], begins[program + 1], LANES):
            size = min(LANES, begins[program + 1] - begin)
            fill_plain_lanes(desk, task, rows, num_stages, order, begin, size)
            _run(desk, table, program)
            for stage in range(num_stages):
                for lane in range(size):
                    pipeline = order[begin + lane]
                    at = stage * STAGE_ROWS
                    stages = vector_rows(desk.stages)
                    out.start_s[pipeline, stage] = stages[at + STAGE_BUSY, lane]
                    out.end_s[pipeline, stage] = stages[at + STAGE_FREE, lane]


@kernel
def _run(lanes: Lanes, programs: PipelinePrograms, program: int) -> None:
    """Go through a table of operations; the start of a stage's last one stays in its row."""
    stages, wires = vector_rows(lanes.stages), vector_rows(lanes.wires)
    arrivals, rows = vector_rows(lanes.arrivals), programs.rows
    store(arrivals, 0, splat(0.0))
    for row in range(programs.first_row[program], programs.first_row[program + 1]):
        if programs.is_last[row]:
            at = rows[row, 0] * STAGE_ROWS
            start = larger(load(stages, at + STAGE_FREE), load(arrivals, rows[row, 2]))
            store(stages, at + STAGE_BUSY, start)
        run_row(stages, wires, arrivals, rows, row)
