"""Scores of nodes for a pod: predicted seconds, NUMA nodes, what is left, and preferences.

The parts of a score are in [0, 1], 1 the best:

- topology: ``1 - log2(t / t_best) / max(3, log2(t_worst / t_best))`` with the predicted time ``t``
  of an all-reduce among the GPUs; ``t_best`` and ``t_worst`` are those of any set of the size on
  any server of the cluster without other pods. The floor of 3 keeps small differences small;
- NUMA: ``1 / n`` for GPUs on ``n`` NUMA nodes, 1/2 where they are not known;
- balance: 1 - fragmentation of the GPUs that are left on the node;
- preference: 1 on a node that the pod prefers, or if it prefers none;
- latency: as topology, for an all-reduce of 8 bytes; weight 0 by default.

Bonus and penalty for NUMA nodes move the mean of the parts, out of 100; all is scaled to [0, 1].
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from agents.devices.k8s.node_fit import NodeFit
from agents.devices.k8s.score_weights import ScoreWeights

MOST_SCORE = 10
"""Largest score of an extender; kube-scheduler does not cut off larger ones."""

_LEVELS = 10
"""Scores of nodes that fit: 1 to 10. Nodes that do not fit have 0."""

_LEAST_DOUBLINGS = 3.0
_UNKNOWN_NUMA = 0.5
_EQUAL = 1e-9


def topology_share(time_s: float, best_s: float, worst_s: float) -> float:
    """Share of a predicted time between the best and the worst of a cluster.

    Examples
    --------
    >>> [round(topology_share(time_s, 1.0, 64.0), 3) for time_s in (1.0, 2.0, 8.0, 64.0)]
    [1.0, 0.833, 0.5, 0.0]
    """
    if time_s <= best_s or best_s <= 0.0:
        return 1.0
    doublings = max(_LEAST_DOUBLINGS, math.log2(worst_s / best_s))
    return max(0.0, 1.0 - math.log2(time_s / best_s) / doublings)


def score_share(
    fit: NodeFit,
    times_s: tuple[float, float] | None,
    *,
    is_preferred: bool,
    weights: ScoreWeights,
    latencies_s: tuple[float, float] | None = None,
) -> float:
    """Score of GPUs of a node, in [0, 1].

    Parameters
    ----------
    times_s
        Least and most predicted time of any set of the size in the cluster; None where unknown.
    latencies_s
        The same of an all-reduce of 8 bytes, if it has a weight.
    """
    topology, latency = (
        0.0 if one is None or of_any is None else topology_share(one, *of_any)
        for one, of_any in ((fit.all_reduce_s, times_s), (fit.latency_s, latencies_s))
    )
    numa = _UNKNOWN_NUMA if fit.num_nodes is None else 1.0 / fit.num_nodes
    parts = (topology, numa, 1.0 - fit.fragmentation_fraction, float(is_preferred), latency)
    of_parts = weights.parts
    total = math.fsum(weight * part for weight, part in zip(of_parts, parts, strict=True))
    share = min(1.0, max(0.0, total / math.fsum(of_parts)))
    bonus, penalty = weights.same_numa_bonus, weights.cross_numa_penalty
    if fit.num_nodes is None or not bonus + penalty:
        return share
    points = 100.0 * share + (bonus if fit.num_nodes == 1 else -penalty)
    return (points + penalty) / (100.0 + bonus + penalty)


def whole_scores(shares: Sequence[float | None]) -> list[int]:
    """Whole scores from 0 to 10, in the order of the shares; None, a node that does not fit, is 0.

    A share becomes the nearest of 1 to 10. Nodes whose shares differ get different scores as far as
    there are enough of them: of more than ten shares those closest to each other count as equal.

    Examples
    --------
    >>> whole_scores([0.95, 0.412, None, 0.409])
    [10, 4, 0, 3]
    """
    distinct = sorted({share for share in shares if share is not None}, reverse=True)
    groups = _group(distinct)
    levels = [
        min(_LEVELS, max(1, math.floor(_LEVELS * sum(group) / len(group) + 0.5)))
        for group in groups
    ]
    for place in range(1, len(levels)):
        levels[place] = min(levels[place], levels[place - 1] - 1)
    for back, place in enumerate(range(len(levels) - 1, -1, -1), start=1):
        levels[place] = max(levels[place], back)
    score_of: dict[float | None, int] = {None: 0}
    for level, group in zip(levels, groups, strict=True):
        score_of.update(dict.fromkeys(group, level))
    return [score_of[share] for share in shares]


def _group(falling: Sequence[float]) -> list[list[float]]:
    """Groups of equal or close shares, at most ten: cut where the gaps are largest."""
    gaps = [one - other for one, other in pairwise(falling)]
    cuts = [place for place, gap in enumerate(gaps) if gap > _EQUAL]
    if len(cuts) >= _LEVELS:
        cuts = sorted(sorted(cuts, key=lambda place: (-gaps[place], place))[: _LEVELS - 1])
    ends = [place + 1 for place in cuts]
    groups = [
        list(falling[first:last])
        for first, last in zip([0, *ends], [*ends, len(falling)], strict=True)
    ]
    return groups if falling else []
