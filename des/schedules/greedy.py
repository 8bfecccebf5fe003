"""Greedy list scheduling that knows links and memory: for any pipeline."""

from itertools import product

from des.schedules.list_scheduling import DispatchRule, ListScheduler, Turn
from des.schedules.operations import Orders
from des.schedules.pipeline import Pipeline

_TURNS: tuple[Turn, ...] = ("alternate", "D", "F")
_HOLD_FRACTIONS = (0.0, 0.25)
_GAP_FRACTIONS = (0.0, 0.5)

GREEDY_RULES = tuple(
    DispatchRule(turn=turn, hold_fraction=hold, gap_fraction=gap)
    for gap, hold, turn in product(_GAP_FRACTIONS, _HOLD_FRACTIONS, _TURNS)
)
"""Rules of the greedy schedule; the first three never leave a device idle that could work."""


def greedy(pipeline: Pipeline) -> Orders:
    """Do at any moment what can start, by a few rules; the orders of the shortest makespan.

    A free device takes the forward pass or the input gradient that has arrived: of both in turn, as
    1F1B does, or always the one, or always the other. Forward passes start as early as memory
    allows, so the pipeline fills up until the round trip over slow borders is hidden or memory is
    full. A weight gradient fills any gap. Half of the rules hold a forward pass back for an input
    gradient that comes within a quarter of its time, and half of them keep a gap free that a weight
    gradient would more than double. Of equal makespans the earlier rule wins.

    The idea is that of the greedy scheduler of CrossPipe [1]_, the rules our own. Nothing is left
    to chance. `des.schedules.automatic` tries many more rules.

    Raises
    ------
    ValueError
        If a device has no memory for one microbatch on each of its stages.

    References
    ----------
    .. [1] T. Chen et al., "CrossPipe: Towards Optimal Pipeline Schedules for Cross-Datacenter
       Training", USENIX ATC 2025.

    Examples
    --------
    >>> for order in greedy(Pipeline.uniform(2, 3)):
    ...     print(*(f"{kind}{microbatch}" for kind, microbatch, _ in order))
    F0 F1 F2 D0 W0 D1 W1 D2 W2
    F0 D0 F1 D1 F2 D2 W0 W1 W2
    """
    scheduler = ListScheduler(pipeline)
    times_s = [makespan_s for _, makespan_s in scheduler.run_all(GREEDY_RULES)]
    scheduler.run(GREEDY_RULES[times_s.index(min(times_s))])
    return scheduler.orders()
