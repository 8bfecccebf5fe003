"""A scheduler under steady reports of many nodes on a simulated clock: time of a report, memory.

Each node reports every fifth of its lease, as `scenarios.cluster.node_agent` does, and its ranks
have begun an iteration more each time. Requests and answers are read and written as JSON, the
state is a SQLite file; what lacks are the sockets. Times are of the CPU: waits for the disk, where
a report changes the state, are not in them.

Example: ``python -m bench.cluster_reports --nodes 1000 --jobs 5000 --hours 1``.
"""

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from agents.cluster.table import PolicySetting, policy_named
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.messages import (
    JobForm,
    NodeOrders,
    NodeReport,
    RankReport,
    message_text,
    read_message,
)
from scenarios.cluster.orders import node_orders
from scenarios.cluster.service import ClusterService
from scenarios.cluster.store import SqliteStore

GPUS_PER_NODE = 8
LEASE_S, ROUND_S = 60.0, 30.0
JOB_SIZES = (1, 1, 2, 4, 8)
_PER_WAKING = 10
"""Reports between two looks of the scheduler at its clock."""


class ClockedService(ClusterService):
    """A service whose time passes when it is told."""

    clock_s = 0.0

    def now_s(self) -> float:
        """Time that it was told last."""
        return self.clock_s

    def pass_time(self, now_s: float) -> None:
        """Let time pass, and decide if it is time to."""
        self.clock_s = now_s
        self._plan_tick()
        self._pass_time()


class Node:
    """A node that does what it is told."""

    def __init__(self, name: str) -> None:
        self._name, self._number = name, 0
        self._ranks: dict[tuple[int, int, int], RankReport] = {}

    def report(self) -> bytes:
        """Report as it is sent; every rank has begun an iteration more."""
        self._number += 1
        for rank in self._ranks.values():
            rank.begun += not rank.is_frozen
        report = NodeReport(
            node=self._name,
            incarnation="1",
            number=self._number,
            is_first=self._number == 1,
            num_gpus=GPUS_PER_NODE,
            address="127.0.0.1",
            free_ports=list(range(4000, 4000 + GPUS_PER_NODE)),
            ranks=list(self._ranks.values()),
        )
        return message_text(report)

    def obey(self, orders: NodeOrders) -> None:
        """Start, hold and end ranks as ordered."""
        before, self._ranks = self._ranks, {}
        for order in orders.ranks:
            key = order.job, order.launch, order.rank
            rank = before.get(key) or RankReport(job=key[0], launch=key[1], rank=key[2])
            rank.is_frozen = order.is_held
            leaves = order.leaves_at is not None and rank.begun + 1 >= order.leaves_at
            if leaves and not rank.has_ended:
                rank.left, rank.has_ended = "lease", True
            rank.has_ended = rank.has_ended or order.is_killed
            self._ranks[key] = rank


async def run(num_nodes: int, num_jobs: int, hours: float, policy: str, folder: Path) -> None:
    """Let all nodes report; print a line for each tenth of the time."""
    setting = PolicySetting(quantum_s=ROUND_S)
    cluster = LiveCluster(policy=policy_named(policy, setting=setting), lease_s=LEASE_S)
    store = SqliteStore(folder / "state.db")
    service = ClockedService(cluster, store, name=policy, round_s=ROUND_S)
    nodes = [Node(f"n{at:04d}") for at in range(num_nodes)]
    for node in nodes:
        await service.report(read_message(NodeReport, node.report(), "Report"))
    for at in range(num_jobs):
        size = JOB_SIZES[at % len(JOB_SIZES)]
        await service.submit(JobForm(launch_command="train", num_gpus=size))
    every_s = LEASE_S / 5
    num_turns = max(10, round(hours * 3600.0 / every_s))
    took_s: list[float] = []
    for turn in range(num_turns):
        for at, node in enumerate(nodes):
            if at % _PER_WAKING == 0:
                service.pass_time((turn + at / num_nodes) * every_s)
            body = node.report()
            begun_s = time.process_time()
            reply = await service.report(read_message(NodeReport, body, "Report"))
            message_text(reply)
            took_s.append(time.process_time() - begun_s)
            node.obey(node_orders(cluster, f"n{at:04d}"))
        if (turn + 1) % (num_turns // 10) == 0:
            took_s.sort()
            running = sum(job.current is not None for job in cluster.jobs.values())
            sys.stderr.write(
                f"{service.now_s():6.0f} s: {running} jobs placed, {len(took_s):,} reports, median "
                f"{1e3 * took_s[len(took_s) // 2]:.2f} ms, p99 "
                f"{1e3 * took_s[int(0.99 * len(took_s))]:.2f} ms, longest {1e3 * took_s[-1]:.0f} "
                f"ms, resident {_resident_mib():.0f} MiB\n"
            )
            took_s.clear()
    store.close()


def _resident_mib() -> float:
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def main(argv: Sequence[str] | None = None) -> int:
    """Run a scheduler for some simulated hours."""
    parser = argparse.ArgumentParser(prog="python -m bench.cluster_reports", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000, help="(default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=5000, help="(default: %(default)s)")
    parser.add_argument("--hours", type=float, default=1.0, help="(default: %(default)s)")
    parser.add_argument("--policy", default="las", help="(default: %(default)s)")
    flags = parser.parse_args(argv)
    with (
        tempfile.TemporaryDirectory() as name,
        open(os.devnull, "w") as news,
        contextlib.redirect_stdout(news),
    ):
        asyncio.run(run(flags.nodes, flags.jobs, flags.hours, flags.policy, Path(name)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
