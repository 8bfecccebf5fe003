"""Times of epochs: a change of plan, then iterations."""

from des.base.jit import kernel
from des.compiled.many.layout import Flags, Real


@kernel
def epoch_times(
    change_s: Real, step_s: Real, is_mean: Flags, num_iterations: int, times_s: Real
) -> None:
    """Add up changes and iterations as `agents.decision.run_epochs.run_course` does, (N,) each. [s]

    Iterations that are alike are added one after the other, mean ones together.
    """
    for row in range(times_s.size):
        now_s = change_s[row]
        if is_mean[row]:
            now_s += num_iterations * step_s[row]
        else:
            for _ in range(num_iterations):
                now_s += step_s[row]
        times_s[row] = now_s
