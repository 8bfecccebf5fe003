"""Bandwidths at which another family would take over, found by simulation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agents.answer.judging import judged_plan
from agents.answer.rows import FamilyRow, quickest
from agents.decision.whole_plan import WholeProblem
from des import Topology

FURTHEST = 64.0
"""Largest factor on the bandwidths that is looked at; the least is its inverse."""

_STEPS_AN_OCTAVE = 1
_PRECISION = 1.02


@dataclass(frozen=True, kw_only=True)
class Takeover:
    """A factor on the bandwidth of every link at which another row becomes the quickest.

    Attributes
    ----------
    bandwidth_factor
        The nearest one found, within 2 %; the row in force holds up to there.
    least_bytes_per_s, most_bytes_per_s
        Bandwidths of the slowest and the fastest link then. [bytes/s]
    row
        Place among the rows of the one that takes over.
    """

    bandwidth_factor: float
    least_bytes_per_s: float
    most_bytes_per_s: float
    row: int


def takeovers(
    problem: WholeProblem,
    rows: Sequence[FamilyRow],
    most_slowdown: float | None = None,
    *,
    furthest: float = FURTHEST,
) -> tuple[Takeover, ...]:
    """Find the nearest bandwidths, below and above today's, at which another row is the quickest.

    Every row keeps its plan, the best of its family today, and is judged again at each factor; a
    family's best plan at another bandwidth may be quicker, so that it takes over sooner. Factors
    are looked at an octave apart, then bisected.
    """
    if not problem.topology.links:
        return ()

    def winner(factor: float) -> int:
        return _winner_at(problem, rows, factor, most_slowdown)

    today, found = winner(1.0), []
    for direction in (-1.0, 1.0):
        held, num_steps = 1.0, int(np.log2(furthest) * _STEPS_AN_OCTAVE)
        for step in range(1, num_steps + 1):
            factor = 2.0 ** (direction * step / _STEPS_AN_OCTAVE)
            if winner(factor) != today:
                found.append(_bisected(problem.topology, winner, today, held, factor))
                break
            held = factor
    return tuple(found)


def _bisected(
    topology: Topology, winner: Callable[[float], int], today: int, held: float, taken: float
) -> Takeover:
    """Narrow down between a factor at which today's row holds and one at which it does not."""
    while max(held, taken) > _PRECISION * min(held, taken):
        middle = (held * taken) ** 0.5
        if winner(middle) == today:
            held = middle
        else:
            taken = middle
    bandwidths = [taken * link.bandwidth_bytes_per_s for link in topology.links]
    return Takeover(
        bandwidth_factor=taken,
        least_bytes_per_s=min(bandwidths),
        most_bytes_per_s=max(bandwidths),
        row=winner(taken),
    )


def _winner_at(
    problem: WholeProblem, rows: Sequence[FamilyRow], factor: float, most_slowdown: float | None
) -> int:
    """Place of the quickest row where all links have a multiple of their bandwidth."""
    if factor == 1.0:
        return list(rows).index(quickest(tuple(rows), most_slowdown))
    num_links = len(problem.topology.links)
    faster = replace(
        problem,
        topology=problem.topology.scaled(np.full(num_links, factor), np.ones(num_links)),
    )
    judged = [
        replace(row, judged=judged_plan(faster, row.judged.workload, row.judged.plan))
        for row in rows
    ]
    return judged.index(quickest(tuple(judged), most_slowdown))
