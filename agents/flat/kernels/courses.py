"""Environments on their way through episodes and epochs; the twin of `agents.flat.episode`."""

from agents.flat.kernels.seeds import episode_seed
from des.base.jit import kernel
from des.compiled.many.layout import Course, Runs, Whole


@kernel
def begin_episodes(course: Course, batch_seed: int, uniform: Runs, rows: Whole) -> None:
    """Let the next episodes begin, with the uniform placement; links are not drawn yet."""
    numbers, epochs, seeds = course.number, course.epoch, course.seed
    stage_count, domains, end_layers = (
        course.last.num_stages,
        course.last.domain,
        course.last.end_layer,
    )
    num_stages = uniform.num_stages[0]
    for row in rows:
        numbers[row] += 1
        epochs[row] = 0
        seeds[row] = episode_seed(batch_seed, row, numbers[row])
        stage_count[row] = num_stages
        for stage in range(num_stages):
            domains[row, stage] = uniform.domain[0, stage]
            end_layers[row, stage] = uniform.end_layer[0, stage]


@kernel
def begin_courses(course: Course, placed: Runs, rows: Whole) -> None:
    """Let the next epochs begin, with the new placements; links are not drawn yet."""
    epochs = course.epoch
    stage_count, domains, end_layers = (
        course.last.num_stages,
        course.last.domain,
        course.last.end_layer,
    )
    new_count, new_domains, new_end_layers = placed
    for row in rows:
        epochs[row] += 1
        num_stages = new_count[row]
        stage_count[row] = num_stages
        for stage in range(num_stages):
            domains[row, stage] = new_domains[row, stage]
            end_layers[row, stage] = new_end_layers[row, stage]
