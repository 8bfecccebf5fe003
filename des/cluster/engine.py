"""Engine of the cluster: arrivals, ends, failures and decisions as events on a clock."""

import math
from collections import deque
from collections.abc import Callable
from functools import partial

import simpy

from des.clock import MEDIUM, MEMBER, WORKER, Clock
from des.cluster.accounts import Accounts
from des.cluster.free_gpus import Allocation, FreeCounts
from des.cluster.history import History, Stay
from des.cluster.live_job import LiveJob
from des.cluster.node_changes import NodeCourse
from des.cluster.policy import Decision, Policy, Pricing, View, Watch
from des.cluster.quantum import is_tick, require_quantum, tick_after
from des.cluster.queue_decider import QueueDecider
from des.cluster.queued_job import QueuedJob
from des.cluster.waiting_queue import WaitingQueue
from des.cluster.world import World


class QueueEngine:
    """The state of a run; what happens at one time is followed by one decision."""

    def __init__(
        self,
        world: World,
        policy: Policy,
        pricing: Pricing,
        seed: int,
        watch: Watch | None,
        *,
        clock: Clock | None = None,
    ) -> None:
        require_quantum(policy.ordering.quantum_s)
        self._world, self._policy, self._pricing, self._watch = world, policy, pricing, watch
        self._clock = clock or Clock()
        self._free = FreeCounts(world.nodes)
        self._widest = world.nodes.num_gpus
        self._coming = world.arrivals()
        self._arrived: deque[LiveJob] = deque()
        self._running: dict[int, LiveJob] = {}
        self._waiting: dict[int, LiveJob] = {}
        self._view = View(now_s=0.0, free=self._free, running=self._running, waiting=self._waiting)
        self._queue = WaitingQueue()
        self._decider = QueueDecider(policy, self._view, self._queue)
        self._num_admitted = 0
        self._decides_at_s = math.inf
        self._over = self._clock.event()
        self._accounts = Accounts(world, self._free)
        self._stays: list[Stay] = []
        self._course = NodeCourse(world, seed)
        self._expect_change()
        self._expect_arrival()
        if world.until_s < math.inf:
            self._call_at(world.until_s, MEDIUM + 1, self._end)

    def advance(self, until_s: float = math.inf) -> bool:
        """Let everything happen before a time; return whether the run is over."""
        clock = self._clock
        while not self._over.triggered and clock.peek() < until_s:
            clock.step()
        return self._over.triggered or clock.peek() == math.inf

    def view_at(self, time_s: float) -> View:
        """Return the cluster at a time up to which it has advanced."""
        self._view.now_s = time_s
        return self._view

    def time_in_cluster_s(self, now_s: float) -> float:
        """Sum over all jobs so far of the time from arrival to end, or to now. [s]"""
        live = (*self._view.live_jobs(), *self._arrived)
        return self._accounts.time_of_ended_s + sum(now_s - job.job.arrival_s for job in live)

    def history(self) -> History:
        """Run to the end and sum up."""
        self.advance()
        now_s = min(self._clock.now, self._world.until_s)
        for job in tuple(self._running.values()):
            self._stop(job, now_s)
        return self._accounts.history(now_s, stays=tuple(self._stays))

    def _call_at(self, time_s: float, rank: int, function: Callable[[simpy.Event], None]) -> None:
        self._clock.at(time_s, rank).callbacks.append(function)

    def _end(self, _: simpy.Event) -> None:
        if not self._over.triggered:
            self._over.succeed()

    # Arrivals

    def _expect_arrival(self) -> None:
        job = next(self._coming, None)
        if job is None:
            self._accounts.all_arrived()
            if self._accounts.is_complete:
                self._end(self._over)
            return
        self._call_at(job.arrival_s, WORKER, partial(self._arrive, job))

    def _arrive(self, job: QueuedJob, _: simpy.Event) -> None:
        if job.num_gpus > self._widest:
            self._accounts.refuse(job)
        else:
            self._accounts.arrive(job)
            live = LiveJob(job)
            live.waits_since_s = job.arrival_s
            self._arrived.append(live)
            self._wake()
        self._expect_arrival()

    # Decisions

    def _wake(self) -> None:
        """Decide after all that happens now, or at the end of the round."""
        round_s, now_s = self._world.round_s, self._clock.now
        if round_s:
            now_s = math.ceil(now_s / round_s) * round_s
        self._decide_at(now_s)

    def _decide_at(self, time_s: float) -> None:
        if time_s < self._decides_at_s:
            self._decides_at_s = time_s
            self._call_at(time_s, MEDIUM, self._decide)

    def _decide(self, _: simpy.Event) -> None:
        now_s = self._clock.now
        if now_s != self._decides_at_s:  # it was to happen earlier, and has
            return
        self._decides_at_s = math.inf
        view = self._view
        view.now_s = now_s
        if self._arrived:
            for job in self._policy.admission.admit(view, self._arrived):
                self._admit(job, now_s)
        if self._waiting or self._policy.ordering.changes:
            self._accounts.until(now_s)
            decision = self._decider.decide(
                may_preempt=is_tick(now_s, self._policy.ordering.quantum_s)
            )
            if decision.launched or decision.suspended:
                self._apply(decision, now_s)
        if self._waiting or (self._policy.ordering.changes and self._running):
            self._expect_tick(now_s)

    def _expect_tick(self, now_s: float) -> None:
        """Decide again when running jobs may have to give way."""
        ordering, preempting = self._policy.ordering, self._policy.preempting
        moves = preempting is not None and preempting.moves
        can_change = ordering.preempts or ordering.changes or moves
        if can_change and ordering.quantum_s and self._running:
            self._decide_at(tick_after(now_s, ordering.quantum_s))

    def _admit(self, job: LiveJob, now_s: float) -> None:
        job.number = self._num_admitted
        self._num_admitted += 1
        job.admitted_s = now_s
        self._view.demand_gpus += job.job.num_gpus
        self._enqueue(job, now_s)

    def _enqueue(self, job: LiveJob, now_s: float) -> None:
        job.key = self._policy.ordering.key(job, now_s)
        job.waits_since_s = now_s
        self._waiting[job.number] = job
        self._queue.push(job)

    # Launches and ends

    def _apply(self, decision: Decision, now_s: float) -> None:
        """Let jobs stop and start as decided; the GPUs are theirs already."""
        if self._watch is not None:
            self._watch(self._view, decision)
        for job in decision.suspended:
            self._stop(job, now_s)
            job.saved_s = job.done_s
            job.suspensions += 1
            self._waiting[job.number] = job
        self._accounts.num_suspensions += len(decision.suspended)
        for job, allocation in decision.launched:
            self._start(job, allocation, now_s)
        self._reprice(now_s)

    def _start(self, job: LiveJob, allocation: Allocation, now_s: float) -> None:
        del self._waiting[job.number]
        self._running[job.number] = job
        job.last_allocation = job.allocation or job.last_allocation
        job.allocation, job.held = allocation, job.width
        job.launches += 1
        job.launch_s = now_s
        if job.launches == 1:
            job.first_launch_s = now_s
            if self._world.is_tracked(job.job.job_id):
                job.first_gpus = self._free.numbers(allocation)
        job.since_s = job.ready_s = now_s + self._pricing.restart_s(job, self._free)
        job.rate = self._pricing.rate(job, self._free)
        self._accounts.num_held += job.held
        traffic = self._pricing.traffic(job, self._free)
        if traffic is not None:
            self._accounts.carry(traffic.of_launch, 1.0)
        self._expect_end(job)

    def _expect_end(self, job: LiveJob) -> None:
        job.version += 1
        end_s = job.end_s
        if end_s < math.inf:
            due_s = max(end_s, self._clock.now)
            self._call_at(due_s, WORKER + 1, partial(self._finish, job, job.version))

    def _finish(self, job: LiveJob, version: int, _: simpy.Event) -> None:
        """Let a job end, unless it has stopped or changed its rate since that was foreseen."""
        if job.version != version:
            return
        now_s = self._clock.now
        self._accounts.until(now_s)
        self._free.give(job.allocation)
        self._stop(job, now_s)
        self._view.demand_gpus -= job.job.num_gpus
        self._accounts.finish(job, now_s)
        if self._accounts.is_complete:
            self._end(self._over)
            return
        self._reprice(now_s)
        if self._waiting or self._arrived or self._policy.ordering.changes:
            self._wake()

    def _stop(self, job: LiveJob, now_s: float) -> None:
        """Take a job off its GPUs, which need not be free then, and count its service."""
        self._accounts.stop(job, now_s)
        if self._world.keeps_stays and self._world.is_tracked(job.job.job_id):
            self._stays += [
                Stay(job.job.job_id, node, gpus.bit_count(), job.launch_s, now_s)
                for node, gpus in job.allocation
            ]
        job.done_s = min(job.done_by(now_s), job.job.service_s)
        traffic = self._pricing.traffic(job, self._free)
        if traffic is not None:  # since its launch it has done what no checkpoint holds
            self._accounts.carry(traffic.per_service_s, job.done_s - job.saved_s)
        job.attained_s = job.attained_by(now_s)
        job.last_allocation, job.allocation = job.allocation, ()
        job.launch_s = math.inf
        job.version += 1
        del self._running[job.number]

    def _reprice(self, now_s: float) -> None:
        """Update the rates of running jobs, which may depend on each other."""
        rates = self._pricing.rates(self._running, self._free)
        for number, rate in (rates or {}).items():
            job = self._running[number]
            if rate != job.rate:
                job.done_s = job.done_by(now_s)
                job.since_s = max(job.since_s, now_s)
                job.rate = rate
                self._expect_end(job)

    # Nodes

    def _expect_change(self) -> None:
        time_s = self._course.next_s()
        if time_s < math.inf:
            self._call_at(time_s, MEMBER, self._change)

    def _change(self, _: simpy.Event) -> None:
        """Let nodes join, drain, fail or leave."""
        now_s = self._clock.now
        self._accounts.until(now_s)
        for node, kind in self._course.changes_at(now_s):
            if kind == "join":
                self._free.open_node(node)
            else:
                self._free.close_node(node)
            self._accounts.change(node, kind)
            if kind in ("fail", "leave"):
                self._clear(node, now_s, is_failure=kind == "fail")
        self._reprice(now_s)
        self._expect_change()
        self._wake()

    def _clear(self, node: int, now_s: float, *, is_failure: bool) -> None:
        """Stop the jobs of a node; after a failure they continue from their last checkpoint."""
        gone = [
            job for job in self._running.values() if any(own == node for own, _ in job.allocation)
        ]
        for job in gone:
            self._free.give(job.allocation)
            self._stop(job, now_s)
            if is_failure:
                self._accounts.fall_back(job)
            else:
                job.saved_s = job.done_s
                job.suspensions += 1
                self._accounts.num_suspensions += 1
            self._enqueue(job, now_s)
