"""Greedy list scheduling that knows links and memory: for any pipeline."""

from des.schedules.list_scheduling import DispatchRule, list_schedule
from des.schedules.operations import Orders
from des.schedules.pipeline import Pipeline

GREEDY_RULE = DispatchRule(turn="alternate", hold_fraction=0.0, gap_fraction=1.0)


def greedy(pipeline: Pipeline) -> Orders:
    """Do at any moment what can start, with one rule for all pipelines.

    A free device takes the forward pass or the input gradient that has arrived, of both in turn,
    as 1F1B does. Forward passes start as early as memory allows, so the pipeline fills up until
    the round trip over slow borders is hidden or memory is full. A weight gradient fills a gap if
    it ends before the next pass can start, by all messages already on their way, and so also where
    memory leaves nothing else to do.

    The idea is that of the greedy scheduler of CrossPipe [1]_, the rule our own. Nothing is left to
    chance. `des.schedules.automatic` tries many rules where this one takes a fixed one.

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
    return list_schedule(pipeline, GREEDY_RULE)
