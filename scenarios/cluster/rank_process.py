"""A rank on its node: the process, its lease, and its end."""

import asyncio
import logging
import os
import signal
from pathlib import Path
from typing import Protocol

from des.base.names import one_line
from des.base.private_folder import open_private
from scenarios.cluster.messages import LeaseQuestion, RankOrder, RankReport, read_message

LOG = logging.getLogger("scenarios.cluster")
_TAIL_BYTES = 4096


class Changed(Protocol):
    """Callback for a changed report of a rank, which is sent at once or soon."""

    def __call__(self, *, is_urgent: bool) -> None:
        """Take note of the change."""


class RankProcess:
    """A rank from its order to its end.

    Attributes
    ----------
    order
        Last order of the scheduler.
    report
        State that the node reports; it has ended once the process is gone.
    """

    def __init__(self, order: RankOrder, changed: Changed, log: Path) -> None:
        self.order = order
        self.report = RankReport(job=order.job, launch=order.launch, rank=order.rank)
        self._changed, self._log = changed, log
        self._process: asyncio.subprocess.Process | None = None
        self._told = asyncio.Event()
        self._killer: asyncio.TimerHandle | None = None

    @property
    def group(self) -> int | None:
        """Process group; None before it has begun."""
        return None if self._process is None else self._process.pid

    async def start(self, lease_socket: str) -> None:
        """Start the process, in a group of its own and with the environment of the node."""
        order = self.order
        try:
            with open(self._log, "ab", opener=open_private) as log:
                self._process = await asyncio.create_subprocess_exec(
                    *order.command,
                    env={**os.environ, **variables_of(order, lease_socket)},
                    cwd=order.folder or None,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:  # ValueError: a word that no process can be given
            where = f" in {order.folder}" if order.folder else ""
            reason = error.strerror if isinstance(error, OSError) else error
            self.end(f"cannot start {order.command[0]!r}{where}: {reason}")
        if self.order.is_killed or self.report.left == "fence":  # while it was being started
            self.send(signal.SIGKILL)
        elif self.report.left == "signal":
            self.send(signal.SIGTERM)

    def is_unwanted(self) -> bool:
        """Whether it is to leave before it was started; then it has ended."""
        order = self.order
        if not (order.is_killed or order.leaves_at is not None or self.report.left):
            return False
        self.report.left = self.report.left or "signal"
        self.end("")
        return True

    async def wait(self) -> None:
        """Wait for the end of the process, then kill processes that it has left behind."""
        if self._process is None:
            return
        code = await self._process.wait()
        self.send(signal.SIGKILL)
        if self._killer is not None:
            self._killer.cancel()
        has_failed = code != 0 and self.report.left not in ("signal", "fence")
        self.end(f"exit code {code}{self._last_line()}" if has_failed else "", code)

    def end(self, reason: str, code: int = 0) -> None:
        """Report the end."""
        self.report.has_ended, self.report.code = True, code
        self.report.reason = one_line(reason, 1000)
        self._told.set()
        self._changed(is_urgent=True)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the rank."""
        if self._process is not None:
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                return  # all have ended
            except PermissionError:
                LOG.warning("job %d: its processes are another user's", self.order.job)

    def obey(self, order: RankOrder, grace_s: float) -> None:
        """Take a new order: be held, leave at an iteration, or be killed."""
        before, self.order = self.order, order
        if order.is_held and not self.report.is_frozen:
            self.report.is_frozen = True
            self._changed(is_urgent=True)
        if order.is_killed and not before.is_killed:
            self.send(signal.SIGKILL)
        if order.leaves_at is not None and before.leaves_at is None:
            if not order.uses_lease:
                self.report.left = "signal"
                self.send(signal.SIGTERM)
            loop = asyncio.get_running_loop()
            self._killer = loop.call_later(grace_s, self._kill_late)
        self._told.set()
        self._told = asyncio.Event()

    def cut_off(self) -> None:
        """Kill it, since the scheduler may have given its GPUs to others."""
        if not self.report.has_ended:
            self.report.left = "fence"
            self.send(signal.SIGKILL)

    def _kill_late(self) -> None:
        self.report.left = "signal"
        self.send(signal.SIGKILL)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the lines of the rank's client, one at a time."""
        try:
            while line := await reader.readline():
                try:
                    border = read_message(LeaseQuestion, line, f"rank {self.order.rank}")
                    answer = await self._decide(border)
                except ValueError as error:
                    answer = one_line(str(error))
                writer.write(f"{answer}\n".encode())
                await writer.drain()
        except (ConnectionError, ValueError):
            return  # the rank has ended, or sends a line without end
        finally:
            writer.close()

    async def _decide(self, border: LeaseQuestion) -> str:
        """Whether the rank may begin an iteration: ``go`` or ``leave``, once that is known."""
        report = self.report
        report.metrics = border.metrics or report.metrics
        while report.is_frozen and self.order.leaves_at is None and not report.has_ended:
            await self._told.wait()
        if self.order.leaves_at is not None and border.iteration >= self.order.leaves_at:
            report.left = report.left or "lease"
            return "leave"
        report.begun = max(report.begun, border.iteration)
        self._changed(is_urgent=False)
        return "go"

    def _last_line(self) -> str:
        """Last line of the log, after a colon."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, self._log.stat().st_size - _TAIL_BYTES))
                lines = log.read(_TAIL_BYTES).decode(errors="replace").split("\n")
        except OSError as error:
            return f": its log cannot be read: {error.strerror}"
        written = [line for line in lines if line.strip()]
        return f": {written[-1]}" if written else ""


def variables_of(order: RankOrder, lease_socket: str) -> dict[str, str]:
    """Variables of the environment by which a rank knows itself.

    Examples
    --------
    >>> order = RankOrder(
    ...     job=3, launch=1, rank=2, world_size=4, gpu=0, gpus=[0, 1], master_address="10.0.0.1",
    ...     master_port=4000, command=["train"], folder="", uses_lease=True,
    ... )
    >>> variables_of(order, "s")["local_accessible_gpus"]
    '0,1'
    """
    gpus = ",".join(map(str, order.gpus))
    return {
        "job_id": str(order.job),
        "dist_rank": str(order.rank),
        "world_size": str(order.world_size),
        "local_gpu_id": str(order.gpu),
        "local_accessible_gpu": gpus,
        "local_accessible_gpus": gpus,
        "master_ip_address": order.master_address,
        "master_port": str(order.master_port),
        "LEASE_SOCKET": lease_socket,
    }
