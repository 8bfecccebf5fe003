"""Pipelines of sketches: whole shares that end together, a schedule, and splits of layers."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from agents.planners.whole.groups import GroupTable, Wanted, whole_shares
from agents.planners.whole.sketches import Sketch
from des.compiled.many.steady import Plans

_MOST_NEIGHBOURS = 400
"""Neighbours of a split of layers that are judged when a copy is refined."""


class WorkedOut(NamedTuple):
    """Pipelines of the groups of a sketch, their shares of the microbatches, and the schedule."""

    pipelines: Plans
    shares: list[int]
    schedule: int


def worked_out(table: GroupTable, sketches: Sequence[Sketch]) -> list[WorkedOut | None]:
    """Work out pipelines of sketches, all in step; None where a group does not fit.

    The pipelines that the sketches need next are judged together.
    """
    total = table.judge.workload.num_microbatches
    shares = [list(whole_shares(sketch.shares, total)) for sketch in sketches]
    schedules = _best_schedules(table, sketches, shares)
    for most in (0, _MOST_NEIGHBOURS):
        going = [
            _level(table, sketch, schedule, own, most)
            for sketch, schedule, own in zip(sketches, schedules, shares, strict=True)
        ]
        while going:
            needed = [next(one, None) for one in going]
            table.refine(each for own in needed for each in own or ())
            going = [one for one, own in zip(going, needed, strict=True) if own is not None]
    found: list[WorkedOut | None] = []
    for sketch, schedule, own in zip(sketches, schedules, shares, strict=True):
        wanted = _wanted(sketch, schedule, own, _MOST_NEIGHBOURS)
        fits = all(np.isfinite(table.refined_s(each)) for each in wanted)
        found.append(WorkedOut(table.refined(wanted), own, schedule) if fits else None)
    return found


def _best_schedules(
    table: GroupTable, sketches: Sequence[Sketch], shares: Sequence[Sequence[int]]
) -> list[int]:
    """Schedules under which the slowest group of each sketch is quickest."""
    groups = [
        each
        for sketch, own in zip(sketches, shares, strict=True)
        for each in zip(sketch.partition, own, strict=True)
    ]
    firsts = np.cumsum([0, *map(len, shares[:-1])])
    longest_s = np.maximum.reduceat(table.least_s(groups), firsts, axis=0)
    best: list[int] = longest_s.argmin(axis=1).tolist()
    return best


def _wanted(sketch: Sketch, schedule: int, shares: Sequence[int], most: int) -> list[Wanted]:
    pairs = zip(sketch.partition, shares, strict=True)
    return [Wanted(group, share, schedule, most) for group, share in pairs]


def _level(
    table: GroupTable, sketch: Sketch, schedule: int, shares: list[int], most: int
) -> Iterator[list[Wanted]]:
    """Move microbatches from the slowest group to the quickest while that helps.

    Yields the pipelines whose times it needs next, and the final ones, each refined by at most
    ``most`` neighbours; ``shares`` is changed in place.
    """
    for _ in range(4 * len(shares)):
        wanted = _wanted(sketch, schedule, shares, most)
        yield wanted
        times_s = [table.refined_s(each) for each in wanted]
        slow = times_s.index(max(times_s))
        quick = times_s.index(min(times_s))
        if shares[slow] == 1 or slow == quick or not np.isfinite(times_s[slow]):
            break
        more = wanted[quick]._replace(num_microbatches=shares[quick] + 1)
        fewer = wanted[slow]._replace(num_microbatches=shares[slow] - 1)
        yield [more, fewer]
        if max(table.refined_s(more), table.refined_s(fewer)) >= times_s[slow]:
            break
        shares[slow] -= 1
        shares[quick] += 1
    yield _wanted(sketch, schedule, shares, most)
