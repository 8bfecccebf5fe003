"""Queue of the events of rings: a binary heap of (time, rank) in two arrays."""

from des.base.jit import kernel
from des.compiled.many.layout import Real, Whole


@kernel
def push_event(times_s: Real, ranks: Whole, count: int, time_s: float, rank: int) -> None:
    """Queue an event behind ``count`` others."""
    place = count
    while place > 0:
        above = (place - 1) >> 1
        other_s = times_s[above]
        if other_s < time_s or (other_s == time_s and ranks[above] < rank):
            break
        times_s[place], ranks[place] = other_s, ranks[above]
        place = above
    times_s[place], ranks[place] = time_s, rank


@kernel
def pop_event(times_s: Real, ranks: Whole, count: int) -> None:
    """Take the first of ``count`` events out."""
    last = count - 1
    time_s, rank = times_s[last], ranks[last]
    place, below = 0, 1
    while below < last:
        other_s, other = times_s[below], ranks[below]
        if below + 1 < last:
            next_s, following = times_s[below + 1], ranks[below + 1]
            if next_s < other_s or (next_s == other_s and following < other):
                below += 1
                other_s, other = next_s, following
        if time_s < other_s or (time_s == other_s and rank < other):
            break
        times_s[place], ranks[place] = other_s, other
        place = below
        below = 2 * place + 1
    times_s[place], ranks[place] = time_s, rank
