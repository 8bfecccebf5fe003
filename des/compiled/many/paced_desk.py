"""Room for the simulation of a pipeline from its paces, and what its stages have left to do."""

from typing import NamedTuple

import numpy as np

from des.base.jit import lean_kernel
from des.compiled.many.layout import Real, Whole
from des.compiled.many.steady import Job, Plans


class Desk(NamedTuple):
    """Room for the simulation of one plan of at most S stages and M microbatches.

    ``passes`` (S, 4) are times of F, B, D and W; ``arrivals`` (2, S, M) times at which activations
    and gradients arrive; ``wires`` (2, S) times from which they are free; ``free`` (S,) those of
    stages; ``done`` (S, 3) counts of F, B or D, and W; ``pace`` (S, 2) how many F come first, and
    by how many microbatches W is behind; ``work_s`` (S,) is for the work of stages, ``tail_s`` (S,)
    for the way of a gradient behind a stage.
    """

    passes: Real
    arrivals: Real
    wires: Real
    free: Real
    done: Whole
    pace: Whole
    work_s: Real
    tail_s: Real


def new_desk(most_stages: int, most_microbatches: int) -> Desk:
    """Make room."""
    return Desk(
        passes=np.zeros((most_stages, 4)),
        arrivals=np.zeros((2, most_stages, most_microbatches)),
        wires=np.zeros((2, most_stages)),
        free=np.zeros(most_stages),
        done=np.zeros((most_stages, 3), dtype=np.int64),
        pace=np.zeros((most_stages, 2), dtype=np.int64),
        work_s=np.zeros(most_stages),
        tail_s=np.zeros(most_stages),
    )


@lean_kernel
def write_tails(job: Job, plans: Plans, plan: int, desk: Desk, is_halved: bool) -> None:
    """Write how long a gradient takes from every stage to the input, and through the first. [s]"""
    tail_s, back = 0.0, 2 if is_halved else 1
    for stage in range(plans.num_stages[plan]):
        if stage > 0:
            here, above = plans.domain[plan, stage], plans.domain[plan, stage - 1]
            tail_s += job.overhead_s + job.wire_s[here, above] + job.latency_s[here, above]
            tail_s += desk.passes[stage - 1, back]
        desk.tail_s[stage] = tail_s


@lean_kernel
def earliest_end_s(desk: Desk, stage: int, count: int, is_halved: bool) -> float:
    """Time that an iteration does not end before, by what is left to a stage. [s]

    The last gradient leaves behind all passes but weight gradients.
    """
    passes, done = desk.passes, desk.done
    back_s = passes[stage, 2] if is_halved else passes[stage, 1]
    end_s: float = desk.free[stage] + (count - done[stage, 0]) * passes[stage, 0]
    end_s += (count - done[stage, 1]) * back_s
    later_s: float = desk.tail_s[stage]
    if is_halved:
        later_s = max(later_s, (count - done[stage, 2]) * passes[stage, 3])
    return end_s + later_s
