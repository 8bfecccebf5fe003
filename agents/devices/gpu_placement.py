"""Placement of a job on GPUs of one server: exact up to 16 free GPUs, greedy beyond."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from agents.devices.goodness import (
    SetScore,
    numbers_of,
    pair_figures,
    places_of,
    score_of_places,
)
from agents.devices.greedy_sets import greedy_places
from agents.devices.numa_policies import (
    NumaPolicy,
    gpus_near_nodes,
    most_nodes,
    nodes_needed,
)
from agents.devices.ring_times import places_all_reduce_s, set_all_reduces_s
from agents.devices.set_tables import (
    KEY_NVLINKS,
    MOST_IN_SETS,
    least_covers,
    set_keys,
    set_maxima,
    set_members,
    set_sums,
)
from des.base.checks import require_count, require_one_of, require_positive
from des.devices.gpus import MOST_GPUS
from des.devices.rings import NO_KEY, Whole
from des.devices.server import Server

Aim = Literal["nvlinks", "time"]

PAYLOAD_BYTES = 100e6
"""Buffer of the all-reduce that placements are compared by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPlacement:
    """GPUs of a server for one job.

    Attributes
    ----------
    gpus
        Numbers of the GPUs, in the order of the server.
    num_nodes
        NUMA nodes that they are on, as few as can be; None where those of a GPU are not known.
    num_ties
        Sets as good in every part, this one included; None where not all were looked at.
    is_exact
        Whether all sets were looked at.
    all_reduce_s
        Predicted time by which the set was chosen; None where time was not the aim.
    why
        Reason in one line.
    """

    server: str
    gpus: tuple[int, ...]
    score: SetScore
    num_nodes: int | None
    num_ties: int | None
    is_exact: bool
    all_reduce_s: float | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A number of GPUs out of those free, by places in the server, and the most NUMA nodes."""

    server: Server
    num_gpus: int
    free: tuple[int, ...]
    most_nodes: int | None

    def mask(self, places: frozenset[int]) -> int:
        """Set of GPUs, by their places."""
        last = len(self.free) - 1
        return sum(1 << last - bit for bit, place in enumerate(self.free) if place in places)


def optimal_placement(
    server: Server,
    num_gpus: int,
    free: Sequence[int] | None = None,
    policy: NumaPolicy = "none",
    *,
    by: Aim = "nvlinks",
    payload_bytes: float = PAYLOAD_BYTES,
) -> GpuPlacement:
    """Choose GPUs for a job.

    The best set has the most NVLinks inside; among equals the pairs without NVLink are closest, by
    the sum of their distances and then the farthest of them; then the network cards are nearest;
    then most is left for others, by the same figures of the GPUs that stay free; then it comes
    first in the order of the server. Only the last part depends on how GPUs are numbered.

    Parameters
    ----------
    num_gpus
        GPUs of the job.
    free
        Numbers of the GPUs that others have not taken (default: all).
    policy
        Rule for NUMA nodes, see `agents.devices.numa_policies`.
    by
        ``time`` puts the least predicted time of a ring all-reduce before all other parts.
    payload_bytes
        Buffer of that all-reduce.

    Raises
    ------
    ValueError
        If there are fewer free GPUs, a number is of none, the policy cannot be met, or time is the
        aim among more than 16 free GPUs.
    """
    question = _question(server, num_gpus, free, policy)
    require_one_of("placement", "by", by, get_args(Aim))
    require_positive("placement", "payload_bytes", payload_bytes)
    if len(question.free) > MOST_IN_SETS:
        if by == "time":
            raise ValueError(
                f"server {server.name}: by must be nvlinks among more than {MOST_IN_SETS} free "
                f"GPUs, got time among {len(question.free)}"
            )
        return _placed(
            question, greedy_places(server, num_gpus, question.free, question.most_nodes)
        )
    keys = _keys(question)
    least_s = None
    if by == "time":
        times_s = set_all_reduces_s(server, question.free, num_gpus, payload_bytes)
        least_s = float(times_s[keys != NO_KEY].min())
        keys[times_s > least_s] = NO_KEY
    return _exact(question, keys, least_s)


def best_sets(
    server: Server,
    num_gpus: int,
    free: Sequence[int] | None = None,
    policy: NumaPolicy = "none",
) -> tuple[tuple[int, ...], ...]:
    """All sets of free GPUs with the most NVLinks inside, by their numbers, in the server's order.

    Raises
    ------
    ValueError
        As `optimal_placement`, or if more than 16 GPUs are free.
    """
    question = _question(server, num_gpus, free, policy)
    if len(question.free) > MOST_IN_SETS:
        raise ValueError(
            f"server {server.name}: all sets can be listed of at most {MOST_IN_SETS} free GPUs, "
            f"got {len(question.free)}"
        )
    nvlinks = _keys(question) >> KEY_NVLINKS  # `NO_KEY` stays below 0
    best = np.flatnonzero(nvlinks == nvlinks.max())[::-1]
    return tuple(numbers_of(server, set_members(question.free, chosen)) for chosen in best.tolist())


def gpus_all_reduce_s(
    server: Server, gpus: Sequence[int], payload_bytes: float = PAYLOAD_BYTES
) -> float | None:
    """Predicted time of an all-reduce among some GPUs; None for more than 16. [s]"""
    if len(gpus) > MOST_GPUS:
        return None
    return places_all_reduce_s(server, places_of(server, "gpus", gpus), payload_bytes)


def _question(
    server: Server, num_gpus: int, free: Sequence[int] | None, policy: NumaPolicy
) -> _Question:
    require_count("placement", "num_gpus", num_gpus)
    places = places_of(server, "free", free)
    if num_gpus > len(places):
        raise ValueError(
            f"server {server.name}: num_gpus must be at most its {len(places)} free GPUs, "
            f"got {num_gpus}"
        )
    return _Question(
        server=server,
        num_gpus=num_gpus,
        free=places,
        most_nodes=most_nodes(server, num_gpus, places, policy),
    )


def _keys(question: _Question) -> Whole:
    """Keys of all sets of the size that the policy allows."""
    figures, free = pair_figures(question.server), np.array(question.free)
    sums = set_sums(figures.packed[np.ix_(free, free)], figures.packed_cards[free])
    keys = set_keys(sums, set_maxima(figures.farness[np.ix_(free, free)]), question.num_gpus)
    if question.most_nodes is not None:
        nodes = gpus_near_nodes(question.server, question.free).values()
        near = np.array([question.mask(gpus) for gpus in nodes])
        keys[least_covers(near, len(free)) > question.most_nodes] = NO_KEY
    return keys


def _exact(question: _Question, keys: Whole, all_reduce_s: float | None) -> GpuPlacement:
    best = np.flatnonzero(keys == keys.max())
    return _placed(question, set_members(question.free, int(best[-1])), len(best), all_reduce_s)


def _placed(
    question: _Question,
    places: Sequence[int],
    num_ties: int | None = None,
    all_reduce_s: float | None = None,
) -> GpuPlacement:
    """Placement at some places; without a number of ties one of a greedy choice."""
    score = score_of_places(question.server, places, question.free)
    return GpuPlacement(
        server=question.server.name,
        gpus=numbers_of(question.server, places),
        score=score,
        num_nodes=nodes_needed(question.server, places),
        num_ties=num_ties,
        is_exact=num_ties is not None,
        all_reduce_s=all_reduce_s,
        why=_reason(question, score, all_reduce_s, num_ties),
    )


def _reason(
    question: _Question, score: SetScore, all_reduce_s: float | None, num_ties: int | None
) -> str:
    """Reason for the best of all sets, or of those of a greedy choice."""
    if num_ties is None:
        return (
            f"{_inside(question, score)}: the best of a greedy choice from every GPU on, as more "
            f"than {MOST_IN_SETS} are free"
        )
    nodes = question.most_nodes
    on_nodes = "" if nodes is None else f" on {nodes} NUMA node{'s' if nodes > 1 else ''}"
    first = (
        f"{_inside(question, score)}{on_nodes}, no set of the {len(question.free)} free has more"
    )
    if all_reduce_s is not None:
        first = f"all-reduce in {1e3 * all_reduce_s:.3f} ms{on_nodes}, no set is faster"
    if num_ties == 1:
        return f"{first}; no other set is as good in every part"
    return f"{first}; {num_ties} sets are as good in every part, this one comes first"


def _inside(question: _Question, score: SetScore) -> str:
    if question.num_gpus == 1:
        return "a single GPU"
    return f"{score.nvlinks} NVLinks inside, farthest pair {score.farthest}"
