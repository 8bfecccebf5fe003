"""Preemption: which running jobs give way to one that finds no GPUs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from des.cluster.free_gpus import positions
from des.cluster.live_job import LiveJob
from des.cluster.policy import Placing, View


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstFirst:
    """Jobs from the end of the order, as many as the job needs to fit."""

    moves: bool = False

    def victims(
        self, view: View, job: LiveJob, candidates: Sequence[LiveJob], placing: Placing
    ) -> Sequence[LiveJob]:
        """Choose jobs from the end of the order until the job fits."""
        allowed = view.free.allowed(job.job.domain, job.gpu_type)
        return fewest_until_fits(view, job, candidates, placing, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneUnit:
    """Jobs of one unit of a level: the unit whose jobs lose the fewest GPUs beyond those needed.

    The level is the job's own or, for jobs without, that of the rule. A job that fits into no unit
    takes jobs from the end of the order.
    """

    level: str = "node"
    moves: bool = False

    def victims(
        self, view: View, job: LiveJob, candidates: Sequence[LiveJob], placing: Placing
    ) -> Sequence[LiveJob]:
        """Choose the jobs of the unit that is cheapest to free."""
        free = view.free
        allowed = free.allowed(job.job.domain, job.gpu_type)
        best: Sequence[LiveJob] = ()
        least = 0
        for unit, inside in _by_unit(view, candidates, job.job.level or self.level, allowed):
            room = free.free_in(unit) + sum(gpus_on(view, each, unit) for each in inside)
            if room < job.width:
                continue
            chosen = fewest_until_fits(view, job, inside, placing, unit)
            lost = sum(each.held for each in chosen)
            if chosen and (not best or lost < least):
                best, least = chosen, lost
        return best or fewest_until_fits(view, job, candidates, placing, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeRoom:
    """Move running jobs elsewhere so that a job fits: small ones first, under any ordering."""

    level: str = "node"
    moves: bool = True

    def victims(
        self, view: View, job: LiveJob, candidates: Sequence[LiveJob], placing: Placing
    ) -> Sequence[LiveJob]:
        """Choose jobs of a unit that has room for the job without them, if others have for them."""
        if view.free.num_free < job.width:
            return ()
        small_first = sorted(candidates, key=lambda each: (each.held, each.number))
        return OneUnit(level=self.level).victims(view, job, small_first, placing)


def _by_unit(
    view: View, candidates: Sequence[LiveJob], level: str, allowed: int
) -> Iterator[tuple[int, list[LiveJob]]]:
    """Units of a level that hold candidates, and these candidates in their order."""
    units = view.free.unit_masks(level)
    unit_of = {node: mask for mask in units for node in positions(mask)}
    inside: dict[int, list[LiveJob]] = {}
    for job in candidates:
        for mask in dict.fromkeys(unit_of.get(node, 0) for node, _ in job.allocation):
            if mask & allowed:
                inside.setdefault(mask & allowed, []).append(job)
    yield from inside.items()


def fewest_until_fits(
    view: View, job: LiveJob, candidates: Sequence[LiveJob], placing: Placing, allowed: int
) -> Sequence[LiveJob]:
    """First candidates without whose GPUs on the nodes of a mask a job does not fit.

    Empty if it does not fit without all of them either.
    """
    free = view.free
    lacking = job.width - free.free_in(allowed)
    chosen: list[LiveJob] = []
    fits = False
    for each in candidates:
        gained = gpus_on(view, each, allowed)
        if not gained:
            continue
        free.give(each.allocation)
        chosen.append(each)
        lacking -= gained
        if lacking <= 0 and placing.place(free, job) is not None:
            fits = True
            break
    for each in chosen:
        free.take(each.allocation)
    return chosen if fits else ()


def gpus_on(view: View, job: LiveJob, allowed: int) -> int:
    """GPUs that a job holds on those nodes of a mask that take jobs."""
    return sum(
        gpus.bit_count()
        for node, gpus in job.allocation
        if allowed >> node & 1 and view.free.takes_jobs(node)
    )
