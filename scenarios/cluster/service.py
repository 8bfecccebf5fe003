"""The scheduler as a service: answers of its methods, rounds of decisions, state on the disk."""

import asyncio
import hashlib
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from des.base.names import printable
from scenarios.cluster import tracked_jobs
from scenarios.cluster.launch_phases import lose_silent_nodes
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.live_decisions import decide_jobs
from scenarios.cluster.messages import (
    Ack,
    CancelRequest,
    ClusterMessage,
    DrainRequest,
    FollowRequest,
    JobForm,
    NodeOrders,
    NodeReport,
    NodeStatus,
    ReportReply,
    Status,
    StatusRequest,
    Submitted,
    message_text,
    read_own,
)
from scenarios.cluster.node_reports import take_report
from scenarios.cluster.orders import node_orders
from scenarios.cluster.store import StateStore


class _Beginning(ClusterMessage):
    """Beginning of a state, and how often it was taken up."""

    unix_s: float
    runs: int


class ClusterService:
    """Answers of a scheduler; each is given after what it changes is stored.

    Parameters
    ----------
    round_s
        Decisions are made at its multiples only; 0: at every event. [s]
    tracked
        First and last job whose times are printed once all of them have ended.
    """

    def __init__(
        self,
        cluster: LiveCluster,
        store: StateStore,
        *,
        name: str,
        round_s: float,
        tracked: tuple[int, int] | None = None,
    ) -> None:
        self._cluster, self._store, self._name = cluster, store, name
        self._round_s, self._tracked = round_s, tracked
        self._tick_s = round_s or cluster.policy.ordering.quantum_s
        stored = store.read()
        self._beginning = self._begun(stored)
        store.write({"meta": self._beginning.model_dump_json()})
        self._tick_due_s: float | None = None
        self._num_changes = 0
        self._changed = asyncio.Event()
        self._followed: dict[str, asyncio.Event] = {}
        """Events of new orders, by the name of a node that waits for them."""
        self._awake = asyncio.Event()
        latest_s = cluster.restore(stored)
        self._at_0_s = time.monotonic() - max(latest_s, time.time() - self._beginning.unix_s)
        cluster.await_reports(self.now_s())

    @staticmethod
    def _begun(stored: Mapping[str, str]) -> _Beginning:
        if "meta" not in stored:
            return _Beginning(unix_s=time.time(), runs=1)
        before = read_own(_Beginning, stored["meta"], "meta")
        return _Beginning(unix_s=before.unix_s, runs=before.runs + 1)

    def now_s(self) -> float:
        """Time since the beginning of the state, whatever is done to the clock meanwhile. [s]"""
        return time.monotonic() - self._at_0_s

    # Time

    async def keep_time(self) -> None:
        """Decide when it is time to, and take silent nodes for lost; sleeps in between."""
        while True:
            self._awake.clear()
            self._plan_tick()
            times = [self._tick_due_s, self._cluster.next_expiry_s()]
            due_s = min((each for each in times if each is not None), default=None)
            with suppress(TimeoutError):
                limit_s = None if due_s is None else max(0.0, due_s - self.now_s())
                await asyncio.wait_for(self._awake.wait(), limit_s)
            self._pass_time()

    def _plan_tick(self) -> None:
        """Plan the next tick if there is something to decide."""
        cluster, tick_s = self._cluster, self._tick_s
        if not tick_s or self._tick_due_s is not None:
            return
        if cluster.can_preempt() or (self._round_s and cluster.wants_decision):  # asks all jobs
            self._tick_due_s = (self.now_s() // tick_s + 1) * tick_s

    def _pass_time(self) -> None:
        now_s = self.now_s()
        has_lost = lose_silent_nodes(self._cluster, now_s)
        is_tick = self._tick_due_s is not None and now_s >= self._tick_due_s
        if is_tick:
            self._tick_due_s = None
            tick_at_s = now_s // self._tick_s * self._tick_s
            decide_jobs(self._cluster, tick_at_s, may_preempt=True)
        if is_tick or has_lost:
            self._settle()

    def _settle(self) -> None:
        """Decide where decisions are made at events; start what can; store; tell all who wait."""
        cluster, now_s = self._cluster, self.now_s()
        if cluster.wants_decision and not self._round_s:
            decide_jobs(cluster, now_s, may_preempt=not self._tick_s)
        cluster.start_ready(now_s)
        changes, news, nodes = cluster.take_changes()
        if changes:
            self._store.write(changes)
        for name in nodes & self._followed.keys():
            self._followed.pop(name).set()
        for line in news:
            sys.stdout.write(f"{now_s:9.2f} s  {printable(line)}\n")
        self._tell_times(now_s)
        sys.stdout.flush()
        self._num_changes += 1
        self._changed.set()
        self._changed = asyncio.Event()
        if changes or cluster.wants_decision:  # other reports only put off the end of a lease
            self._awake.set()

    def _tell_times(self, now_s: float) -> None:
        """Tell the times of the tracked jobs, once."""
        if self._tracked is None:
            return
        jobs = [job.status(now_s) for job in self._cluster.jobs.values() if job.has_ended]
        ended = tracked_jobs.tracked_jobs(jobs, self._tracked)
        if tracked_jobs.is_complete(ended, self._tracked):
            sys.stdout.write(tracked_jobs.times_text(ended, self._tracked))
            self._tracked = None

    # Answers

    async def report(self, request: NodeReport) -> ReportReply:
        """Take a node's report."""
        try:
            may_go = take_report(self._cluster, request, self.now_s())
        finally:
            self._settle()  # also after a lie
        return ReportReply(lease_s=self._cluster.lease_s, may_go=may_go)

    async def follow(self, request: FollowRequest) -> NodeOrders:
        """Give a node its orders once they are others than it has, or after a third of its lease.

        Raises
        ------
        ValueError
            If the node has not reported.
        """
        ends_s = time.monotonic() + self._cluster.lease_s / 3
        while True:
            node = self._cluster.nodes.get(request.node)
            if node is None or node.incarnation != request.incarnation:
                raise ValueError(f"node {request.node}: must report before it follows")
            orders = node_orders(self._cluster, request.node)
            if orders_digest(orders) != request.digest:
                return orders
            changed = self._followed.setdefault(request.node, asyncio.Event())
            if not await _happens(changed, ends_s):
                return orders

    async def submit(self, request: JobForm) -> Submitted:
        """Take a job."""
        job = self._cluster.submit(request, self.now_s())
        self._settle()
        return Submitted(job=job)

    async def cancel(self, request: CancelRequest) -> Ack:
        """End a job."""
        self._cluster.cancel(request.job, self.now_s())
        self._settle()
        return Ack()

    async def drain(self, request: DrainRequest) -> Ack:
        """Let a node take no more jobs, or jobs again."""
        self._cluster.drain(request.node, takes_jobs=request.takes_jobs)
        self._settle()
        return Ack()

    async def status(self, request: StatusRequest) -> Status:
        """Give the status, once it is another than the one that is known or time is over."""
        ends_s = time.monotonic() + request.wait_s
        while request.version == self._version() and await _happens(self._changed, ends_s):
            pass
        now_s, cluster = self.now_s(), self._cluster
        held: dict[str, int] = {}
        for job in cluster.jobs.values():
            for launch in job.on_gpus():
                for rank in launch.ranks:
                    held[rank.node] = held.get(rank.node, 0) + (not rank.has_ended)
        return Status(
            version=self._version(),
            policy=self._name,
            now_s=now_s,
            nodes=[
                NodeStatus(
                    node=node.name,
                    state="drained" if node.takes_jobs < (node.presence == "up") else node.presence,
                    address=node.address,
                    num_gpus=node.num_gpus,
                    num_free=node.num_gpus - held.get(node.name, 0),
                )
                for node in cluster.nodes.values()
            ],
            jobs=[job.status(now_s) for job in cluster.jobs.values()],
        )

    def _version(self) -> str:
        return f"{self._beginning.runs}.{self._num_changes}"


async def _happens(event: asyncio.Event, ends_s: float) -> bool:
    """Wait for an event; False if it does not happen in time."""
    left_s = ends_s - time.monotonic()
    if left_s <= 0:
        return False
    try:
        await asyncio.wait_for(event.wait(), left_s)
    except TimeoutError:
        return False
    return True


def orders_digest(orders: NodeOrders) -> str:
    """Digest by which a node says which orders it has."""
    return hashlib.sha256(message_text(orders)).hexdigest()
