"""A node at work: reports to the scheduler, follows its orders, answers for leases of ranks."""

import asyncio
import logging
import math
import secrets
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from scenarios.cluster.guard_process import Guard, GuardError
from scenarios.cluster.machine import free_ports
from scenarios.cluster.messages import (
    FollowRequest,
    NodeOrders,
    NodeReport,
    RankOrder,
    ReportReply,
)
from scenarios.cluster.rank_process import RankProcess
from scenarios.cluster.rpc import NoAnswerError, SchedulerLink
from scenarios.cluster.service import orders_digest

LOG = logging.getLogger("scenarios.cluster")
_ANSWER_S = 10.0
_RETRY_S = 0.5
_METRICS_S = 1.0
_MOST_PORTS = 16
_FENCE_FRACTION = 0.8
"""Part of its lease after which a node ends its jobs: before the scheduler gives them to others."""

Key = tuple[int, int, int]
"""Job, launch and rank."""


@dataclass(slots=True, kw_only=True)
class NodeIdentity:
    """A node as it presents itself."""

    name: str
    address: str
    num_gpus: int
    gpu_type: str = ""
    domain: str = ""
    rack: str = ""
    incarnation: str = field(default_factory=lambda: secrets.token_hex(8))


class NodeAgent:
    """The node between scheduler and ranks."""

    def __init__(self, identity: NodeIdentity, link: SchedulerLink, logs: Path) -> None:
        self._identity, self._link, self._logs = identity, link, logs
        self._sockets = Path(tempfile.mkdtemp(prefix="eastwest-node-"))
        self._guard = Guard(self._sockets)
        self._ranks: dict[Key, RankProcess] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._news = asyncio.Event()
        self._met_timer: asyncio.TimerHandle | None = None
        self._met_s = -math.inf
        self._fence: asyncio.TimerHandle | None = None
        self._wanted: set[Key] = set()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._number = 0
        self._lease_s = 0.0
        self._contact_s: float | None = None
        self._is_leaving = self._is_cut_off = self._has_warned = False
        self._digest = ""
        self._is_known = asyncio.Event()

    async def run(self, say: Callable[[str], None]) -> None:
        """Report and follow until the scheduler lets the node go.

        Raises
        ------
        ValueError
            If the scheduler refuses the node.
        """
        follower = asyncio.create_task(self._follow())
        reporter = asyncio.create_task(self._report(say))
        try:
            parts = (follower, reporter, self._failure)
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            follower.cancel()
            reporter.cancel()
            await self._end()

    def leave(self) -> None:
        """Leave in order: jobs leave at the end of an iteration; a second call cuts that short."""
        if self._is_leaving:
            self._cut_off()
            self._is_cut_off = True
        self._is_leaving = True
        self._news.set()

    async def _end(self) -> None:
        self._cut_off()
        tasks = tuple(self._tasks.values())
        await asyncio.gather(*tasks, return_exceptions=True)  # each reports its own error
        self._guard.close()
        await self._link.close()

    def _cut_off(self) -> None:
        for rank in self._ranks.values():
            rank.cut_off()

    # Reports

    async def _report(self, say: Callable[[str], None]) -> None:
        while True:
            self._news.clear()
            sent_s = time.monotonic()
            try:
                reply = await self._link.call("Report", self._message(), ReportReply, _ANSWER_S)
            except NoAnswerError as error:
                if self._may_go_alone():
                    return
                if self._is_known.is_set() or self._contact_s is None:
                    self._warn(str(error))
                self._is_known.clear()
                await asyncio.sleep(max(0.0, _RETRY_S - (time.monotonic() - sent_s)))
                continue
            if not self._is_known.is_set():
                say(f"node {self._identity.name} is known to {self._link.address}")
            self._had_contact(sent_s, reply.lease_s)
            if reply.may_go or self._is_cut_off:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), self._lease_s / 5)

    def _warn(self, text: str) -> None:
        """Warn once until there is contact."""
        if not self._has_warned:
            LOG.warning("%s", text)
        self._has_warned = True

    def _silent_s(self) -> float:
        """Time without contact; infinite before the first one. [s]"""
        return math.inf if self._contact_s is None else time.monotonic() - self._contact_s

    def _may_go_alone(self) -> bool:
        """Whether a leaving node need not wait for the scheduler's answer."""
        return self._is_cut_off or (self._is_leaving and self._silent_s() >= self._lease_s)

    def _had_contact(self, at_s: float, lease_s: float) -> None:
        """Begin a new lease; without contact for most of it the jobs of this node end."""
        self._contact_s, self._lease_s, self._has_warned = at_s, lease_s, False
        self._is_known.set()
        if self._fence is not None:
            self._fence.cancel()
        left_s = lease_s * _FENCE_FRACTION - self._silent_s()
        self._fence = asyncio.get_running_loop().call_later(left_s, self._cut_off)

    def _message(self) -> NodeReport:
        identity = self._identity
        self._number += 1
        return NodeReport(
            node=identity.name,
            incarnation=identity.incarnation,
            number=self._number,
            is_first=self._contact_s is None,
            num_gpus=identity.num_gpus,
            address=identity.address,
            free_ports=free_ports(identity.address, min(identity.num_gpus, _MOST_PORTS)),
            gpu_type=identity.gpu_type,
            domain=identity.domain,
            rack=identity.rack,
            is_leaving=self._is_leaving,
            ranks=[rank.report for rank in self._ranks.values()],
        )

    def _has_changed(self, *, is_urgent: bool) -> None:
        """Report a change of a rank: at once, or, if it is progress, within a second."""
        if is_urgent:
            self._news.set()
        elif self._met_timer is None:
            left_s = max(0.0, self._met_s + _METRICS_S - time.monotonic())
            self._met_timer = asyncio.get_running_loop().call_later(left_s, self._tell_progress)

    def _tell_progress(self) -> None:
        self._met_timer, self._met_s = None, time.monotonic()
        self._news.set()

    # Orders

    async def _follow(self) -> None:
        identity = self._identity
        while True:
            await self._is_known.wait()
            request = FollowRequest(
                node=identity.name, incarnation=identity.incarnation, digest=self._digest
            )
            try:
                limit_s = self._lease_s + _ANSWER_S
                orders = await self._link.call("Follow", request, NodeOrders, limit_s)
            except ValueError:  # no answer, or a state that does not know the node: it reports
                await asyncio.sleep(_RETRY_S)
                continue
            self._digest = orders_digest(orders)
            self._obey(orders)

    def _obey(self, orders: NodeOrders) -> None:
        wanted = {(order.job, order.launch, order.rank): order for order in orders.ranks}
        self._wanted = set(wanted)
        for key in self._ranks.keys() - wanted.keys():
            self._ranks[key].cut_off()
            if key not in self._tasks:
                del self._ranks[key]
        for key, order in wanted.items():
            if key in self._ranks:
                self._ranks[key].obey(order, orders.grace_s)
            else:
                self._begin(key, order, orders.grace_s)

    def _begin(self, key: Key, order: RankOrder, grace_s: float) -> None:
        log = self._logs / "job-{}.launch-{}.rank-{}.log".format(*key)
        rank = self._ranks[key] = RankProcess(order, self._has_changed, log)
        if order.is_killed:
            rank.end("")
            return
        rank.obey(order, grace_s)
        task = self._tasks[key] = asyncio.create_task(self._run(key, rank))
        task.add_done_callback(lambda _: self._has_run(key))

    def _has_run(self, key: Key) -> None:
        """Forget a rank that is over, once the scheduler knows that; an error is of it alone."""
        error = self._tasks.pop(key).exception()
        if isinstance(error, GuardError) and not self._failure.done():
            self._failure.set_exception(error)
        elif error is not None:
            LOG.error("job %d, launch %d, rank %d: has ended", *key, exc_info=error)
            self._ranks[key].cut_off()
            self._ranks[key].end(f"{type(error).__name__}: {error}")
        if key not in self._wanted:
            del self._ranks[key]

    async def _run(self, key: Key, rank: RankProcess) -> None:
        """Run a rank to its end, on a GPU that no earlier rank has any more."""
        earlier = [
            self._tasks[other]
            for other, each in self._ranks.items()
            if other != key and each.order.gpu == rank.order.gpu and other in self._tasks
        ]
        if earlier:
            await asyncio.wait(earlier)
        if rank.is_unwanted():
            return
        path = self._sockets / "{}.{}.{}".format(*key)
        server = await asyncio.start_unix_server(rank.answer, path)
        try:
            await rank.start(str(path))
            if rank.group is not None:
                self._guard.add(rank.group)
                await rank.wait()
                self._guard.remove(rank.group)
        finally:
            server.close()
            path.unlink(missing_ok=True)
