"""Decisions of a policy: waiting jobs in order find GPUs, wait, pass or make others give way."""

from collections.abc import Sequence
from operator import itemgetter

from des.cluster.free_gpus import Allocation
from des.cluster.live_job import LiveJob
from des.cluster.policy import Decision, Policy, View
from des.cluster.waiting_queue import Shape, WaitingQueue

BACKFILL_DEPTH = 256
"""Waiting jobs that a backfill looks at, at most."""

_ANY_WIDTH = 10**9


class QueueDecider:
    """Decides with a policy; takes and gives GPUs on the way, and changes no job."""

    def __init__(self, policy: Policy, view: View, queue: WaitingQueue) -> None:
        self._policy, self._view, self._queue = policy, view, queue
        self._suspended: dict[int, LiveJob] = {}
        self._launched: list[tuple[LiveJob, Allocation]] = []
        self._candidates: list[tuple[float, int, LiveJob]] | None = None

    def decide(self, *, may_preempt: bool) -> Decision:
        """Decide about all waiting jobs."""
        ordering = self._policy.ordering
        self._suspended, self._launched, self._candidates = {}, [], None
        if ordering.changes:
            self._prepare()
        if len(self._queue):
            preempting = self._policy.preempting
            gives_way = preempting is not None and (ordering.preempts or preempting.moves)
            self._go_through(may_preempt=may_preempt and gives_way)
        return Decision(tuple(self._suspended.values()), self._launched)

    def decide_now(self, job: LiveJob) -> Decision:
        """Launch one job immediately, or refuse it."""
        ordering, preempting = self._policy.ordering, self._policy.preempting
        self._suspended, self._launched, self._candidates = {}, [], None
        gives_way = preempting is not None and (ordering.preempts or preempting.moves)
        self._queue.push(job)
        found = self._policy.placing.place(self._view.free, job)
        if found is not None:
            self._launch(job, found)
        elif not (gives_way and self._makes_room(job)):
            self._queue.remove(job)
        return Decision(tuple(self._suspended.values()), self._launched)

    def _prepare(self) -> None:
        """Compute all keys; jobs that are to have another width or type of GPU stop."""
        ordering, view = self._policy.ordering, self._view
        ordering.prepare(view)
        for job in view.running.values():
            held_type = view.free.nodes.nodes[job.allocation[0][0]].gpu_type
            if job.width != job.held or job.gpu_type not in ("", held_type):
                view.free.give(job.allocation)
                self._suspended[job.number] = job
        waiting = (*view.waiting.values(), *self._suspended.values())
        for job in waiting:
            job.key = ordering.key(job, view.now_s)
        self._queue.rebuild(job for job in waiting if job.width > 0)

    def _go_through(self, *, may_preempt: bool) -> None:
        policy, queue, free = self._policy, self._queue, self._view.free
        ordering, place = policy.ordering, policy.placing.place
        looks_at_all = ordering.blocks or may_preempt
        failed: set[Shape] = set()
        while True:
            most = _ANY_WIDTH if looks_at_all else free.num_free
            job = queue.first(failed, most) if most else None
            if job is None:
                return
            found = place(free, job)
            if found is not None:
                self._launch(job, found)
            elif may_preempt and self._makes_room(job):
                continue
            elif ordering.blocks:
                if ordering.backfills:
                    self._backfill(job)
                return
            else:
                failed.add(queue.shape_of(job))

    def _launch(self, job: LiveJob, found: Allocation) -> None:
        self._queue.remove(job)
        self._view.free.take(found)
        self._launched.append((job, found))

    def _makes_room(self, job: LiveJob) -> bool:
        """Suspend running jobs for one and launch it, if it then fits.

        Jobs whose GPUs it does not need after all stay; of those that are to move all must.
        """
        preempting, placing, free = self._policy.preempting, self._policy.placing, self._view.free
        assert preempting is not None
        moves = preempting.moves
        candidates = [each for key, _, each in self._worst_first() if moves or key > job.key]
        victims = preempting.victims(self._view, job, candidates, placing) if candidates else ()
        if not victims:
            return False
        for victim in victims:
            free.give(victim.allocation)
        found = placing.place(free, job)
        stay = [each for each in victims if found is None or not _overlap(each.allocation, found)]
        for each in stay:
            free.take(each.allocation)
        if found is None:
            return False
        gone = [each for each in victims if each not in stay]
        moved = self._move(job, found, gone) if moves else []
        if moved is None:
            return False
        self._suspend(gone)
        self._launch(job, found)
        for victim, places in moved:
            self._queue.remove(victim)
            self._launched.append((victim, places))
        return True

    def _move(
        self, job: LiveJob, found: Allocation, gone: Sequence[LiveJob]
    ) -> list[tuple[LiveJob, Allocation]] | None:
        """Other GPUs, taken already, for jobs that move; None, with all as before, if one stays."""
        free, place = self._view.free, self._policy.placing.place
        free.take(found)
        moved: list[tuple[LiveJob, Allocation]] = []
        for victim in gone:
            places = place(free, victim)
            if places is None:
                break
            free.take(places)
            moved.append((victim, places))
        free.give(found)
        if len(moved) == len(gone):
            return moved
        for _, places in moved:
            free.give(places)
        for victim in gone:
            free.take(victim.allocation)
        return None

    def _suspend(self, victims: Sequence[LiveJob]) -> None:
        ordering, now_s = self._policy.ordering, self._view.now_s
        gone = {victim.number for victim in victims}
        assert self._candidates is not None
        self._candidates = [each for each in self._candidates if each[1] not in gone]
        for victim in victims:
            self._suspended[victim.number] = victim
            victim.key = ordering.key(victim, now_s)
            self._queue.push(victim)

    def _worst_first(self) -> list[tuple[float, int, LiveJob]]:
        """Running jobs that may give way, with their keys, last of the order first.

        With a quantum, only jobs that have run for it and beyond the restart of their launch:
        jobs that take turns within a restart would never do any service.
        """
        if self._candidates is None:
            ordering, now_s = self._policy.ordering, self._view.now_s
            self._candidates = [
                (ordering.key(job, now_s), job.number, job)
                for job in self._view.running.values()
                if now_s - job.launch_s >= ordering.quantum_s
                and (ordering.quantum_s == 0 or not job.launch_s < now_s <= job.ready_s)
                and job.number not in self._suspended
            ]
            self._candidates.sort(key=itemgetter(0, 1), reverse=True)
        return self._candidates

    def _backfill(self, head: LiveJob) -> None:
        """Let later jobs pass that do not delay the first one (EASY).

        The first one has a reservation for the time at which enough running jobs will have ended.
        """
        view, free = self._view, self._view.free
        shadow_s, spare = self._reservation(head)
        for job in self._queue.smallest(BACKFILL_DEPTH, free.num_free):
            if job is head or job.width > free.num_free:
                continue
            ends_in_time = view.now_s + job.left_by(view.now_s) <= shadow_s
            if not ends_in_time and job.width > spare:
                continue
            found = self._policy.placing.place(free, job)
            if found is not None:
                self._launch(job, found)
                spare -= 0 if ends_in_time else job.width

    def _reservation(self, head: LiveJob) -> tuple[float, int]:
        """Time at which the first job can start, and GPUs that it then leaves."""
        now_s, num_free = self._view.now_s, self._view.free.num_free
        ends = [(job.end_s, job.number, job.held) for job in self._view.running.values()]
        ends += [(now_s + job.left_by(now_s), job.number, job.width) for job, _ in self._launched]
        for end_s, _, width in sorted(ends):
            if num_free >= head.width:
                break
            num_free += width
            now_s = max(now_s, end_s)
        return now_s, num_free - head.width


def _overlap(one: Allocation, other: Allocation) -> bool:
    gpus_of = dict(one)
    return any(gpus_of.get(node, 0) & gpus for node, gpus in other)
