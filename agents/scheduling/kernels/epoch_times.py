"""Times of epochs as sums over their iterations."""

from des.base.jit import kernel
from des.compiled.many.layout import Real, Whole


@kernel
def epoch_times(
    change_s: Real, free_s: Real, due_s: Real, periods: Whole, num_iterations: int, times_s: Real
) -> None:
    """Add up changes and iterations in order, as `des.simulate_epoch` does, all (N,). [s]

    The last iteration of every period takes ``due_s``, the others ``free_s``.
    """
    for row in range(times_s.size):
        now_s = change_s[row]
        for iteration in range(num_iterations):
            is_due = (iteration + 1) % periods[row] == 0
            now_s += due_s[row] if is_due else free_s[row]
        times_s[row] = now_s
