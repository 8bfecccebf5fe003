"""Rounds of Blox: time advances by rounds only, and a walk over the order places jobs.

The order inside a round at time t: nodes join; running jobs are credited a round of service and may
finish; jobs arrive; admission; ordering; the walk; its suspensions and launches take effect. A
walk stops at the first job that does not fit.
"""

from collections import deque
from operator import attrgetter

from des.cluster.accounts import TrackedJobs
from des.cluster.blox_placing import place_as_blox
from des.cluster.free_gpus import Allocation, FreeCounts
from des.cluster.history import GpuSeconds, History, RoundState
from des.cluster.live_job import LiveJob
from des.cluster.policy import Decision, Policy, View, Watch
from des.cluster.queued_job import QueuedJob
from des.cluster.world import BloxRules, World

_by_job_id = attrgetter("job_id")
_by_key = attrgetter("key")


def run_blox_rounds(world: World, policy: Policy, *, watch: Watch | None = None) -> History:
    """Run a world under the rules of Blox, which have a placing of their own.

    Raises
    ------
    ValueError
        If jobs arrive out of order, or tracked jobs are not among them.
    """
    assert world.blox is not None
    return _Rounds(world, world.blox, policy, watch).history()


class BloxJob(LiveJob):
    """A job with what Blox counts of it: whole rounds of service, and iterations."""

    __slots__ = ("credited", "needed", "per_round", "starves")

    def __init__(self, job: QueuedJob, credit: float) -> None:
        super().__init__(job)
        self.needed = job.service_s / job.iteration_s
        self.per_round = credit / job.iteration_s
        self.credited = 0.0
        self.starves = False

    def attained_by(self, _: float) -> float:
        """Seconds of service, neither by GPUs nor by its rate. [s]"""
        return self.attained_s

    def left_by(self, _: float) -> float:
        """Time of all iterations less the seconds of service, whatever its rate. [s]"""
        return self.job.iteration_s * self.needed - self.attained_s


class _Rounds:
    """The state of a run, round by round."""

    def __init__(self, world: World, rules: BloxRules, policy: Policy, watch: Watch | None) -> None:
        self._world, self._rules, self._policy, self._watch = world, rules, policy, watch
        self._free = FreeCounts(world.nodes)
        self._coming = world.arrivals()
        self._next: QueuedJob | None = next(self._coming, None)
        nodes = world.nodes.nodes
        self._joins = deque(sorted((node.joins_at_s, at) for at, node in enumerate(nodes)))
        self._arrived: deque[LiveJob] = deque()
        self._live: list[BloxJob] = []
        self._running: dict[int, LiveJob] = {}
        self._waiting: dict[int, LiveJob] = {}
        self._view = View(now_s=0.0, free=self._free, running=self._running, waiting=self._waiting)
        self._num_admitted = self._num_suspensions = 0
        self._jobs = TrackedJobs(world)
        self._rounds: list[RoundState] = []
        self._held = self._present = self._free_s = self._part = 0.0

    def history(self) -> History:
        """Go through the rounds until the last tracked job has ended."""
        round_s, number, now_s = self._world.round_s, 0, 0.0
        while now_s < self._world.until_s:
            self._round(now_s)
            if self._jobs.is_complete or self._is_over():
                break
            number += 1
            now_s = number * round_s
        return self._sum_up(now_s)

    def _is_over(self) -> bool:
        """Whether nothing can change any more."""
        if self._running or self._next is not None or self._joins:
            return False
        return all(job.starves for job in self._live)

    def _round(self, now_s: float) -> None:
        view = self._view
        view.now_s = now_s
        while self._joins and self._joins[0][0] <= now_s:
            self._free.open_node(self._joins.popleft()[1])
        if now_s > 0:
            self._credit(now_s)
        self._arrive(now_s)
        for job in self._policy.admission.admit(view, self._arrived):
            self._admit(job, now_s)
        num_free, num_running = self._free.num_free, len(self._running)
        decision = self._walk(now_s)
        self._rounds.append(
            RoundState(
                now_s,
                len(self._live),
                len(self._live) - num_running + len(decision.suspended),
                num_running - len(decision.suspended),
                num_free,
                view.demand_gpus,
                len(decision.suspended),
                len(decision.launched),
            )
        )
        if self._watch is not None and (decision.suspended or decision.launched):
            self._watch(view, decision)
        self._apply(decision, now_s)

    def _credit(self, now_s: float) -> None:
        """Credit a round of service; jobs that are done finish now."""
        round_s, free = self._world.round_s, self._free
        self._present += free.num_present * round_s
        self._held += (free.num_present - free.num_free) * round_s
        self._free_s += free.num_free * round_s
        self._part += (free.num_free - free.num_whole) * round_s
        ended = False
        for job in self._live:
            if job.allocation:
                job.attained_s += round_s
                job.credited += job.per_round
                if job.credited >= job.needed:
                    ended = True
                    self._finish(job, now_s)
        if ended:
            left = self._running.keys() | self._waiting.keys()
            self._live = [job for job in self._live if job.number in left]

    def _finish(self, job: BloxJob, now_s: float) -> None:
        self._free.give(job.allocation)
        job.allocation = ()
        del self._running[job.number]
        self._view.demand_gpus -= job.job.num_gpus
        self._jobs.finish(job, now_s)

    def _arrive(self, now_s: float) -> None:
        """Take the jobs that have arrived, in the order of their numbers."""
        found = []
        while self._next is not None and self._next.arrival_s <= now_s:
            found.append(self._next)
            self._next = next(self._coming, None)
        credit = self._world.round_s * self._rules.rate
        for job in sorted(found, key=_by_job_id):
            self._arrived.append(BloxJob(job, credit))
            self._jobs.arrive(job)

    def _admit(self, job: LiveJob, now_s: float) -> None:
        assert isinstance(job, BloxJob)
        job.number = self._num_admitted
        self._num_admitted += 1
        job.admitted_s = job.waits_since_s = now_s
        self._view.demand_gpus += job.job.num_gpus
        self._waiting[job.number] = job
        self._live.append(job)

    def _order(self, now_s: float) -> list[BloxJob]:
        """Live jobs by class and key; starving ones go first, for ever."""
        key = self._policy.ordering.key
        for job in self._live:
            job.key = key(job, now_s)
        ordered = sorted(self._live, key=_by_key)
        if now_s < self._rules.starves_after_s:
            return ordered
        for job in ordered:  # the round that suspends a job is none of its wait
            suspended_s = self._world.round_s if job.launches else 0.0
            waits_s = now_s - job.waits_since_s - suspended_s
            if not job.allocation and waits_s >= self._rules.starves_after_s:
                job.starves = True
        return sorted(ordered, key=_is_usual)

    def _walk(self, now_s: float) -> Decision:
        """Place waiting jobs in order; take and give GPUs, but change no job yet."""
        if not self._waiting:
            return Decision((), ())
        ordered, free = self._order(now_s), self._free
        suspended: dict[int, LiveJob] = {}
        launched: list[tuple[LiveJob, Allocation]] = []
        last = len(ordered) - 1
        for place, job in enumerate(ordered):
            if job.allocation and job.number not in suspended:
                continue
            found = place_as_blox(free, job.job, self._rules)
            given_up: list[BloxJob] = []
            while found is None and last > place:
                victim = ordered[last]
                last -= 1
                if victim.allocation and victim.number not in suspended:
                    free.give(victim.allocation)
                    suspended[victim.number] = victim
                    given_up.append(victim)
                    found = place_as_blox(free, job.job, self._rules)
            if found is None:
                if not self._rules.keeps_vain:
                    for victim in given_up:
                        free.take(victim.allocation)
                        del suspended[victim.number]
                break
            free.take(found)
            launched.append((job, found))
        return Decision(tuple(suspended.values()), launched)

    def _apply(self, decision: Decision, now_s: float) -> None:
        for job in decision.suspended:
            job.allocation = ()
            job.suspensions += 1
            job.waits_since_s = now_s
            self._waiting[job.number] = self._running.pop(job.number)
        self._num_suspensions += len(decision.suspended)
        for job, allocation in decision.launched:
            job.allocation = allocation
            job.launches += 1
            if job.launches == 1:
                job.first_launch_s = now_s
                job.first_gpus = self._free.numbers(allocation)
            self._running[job.number] = self._waiting.pop(job.number)

    def _sum_up(self, now_s: float) -> History:
        if self._next is None:
            self._jobs.all_arrived()
        return self._jobs.summed_up(
            rounds=tuple(self._rounds),
            gpu_seconds=GpuSeconds(
                present=self._present,
                held=self._held,
                useful=self._held,
                restart=0.0,
                lost=0.0,
                free=self._free_s,
                free_in_part=self._part,
            ),
            num_suspensions=self._num_suspensions,
            end_s=now_s,
        )


def _is_usual(job: BloxJob) -> bool:
    return not job.starves
