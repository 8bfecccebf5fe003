"""Decisions about real jobs: the policy and the decider of the simulated cluster, on live state."""

from collections import deque
from collections.abc import Sequence

from des.cluster.free_gpus import Allocation, FreeCounts, positions
from des.cluster.live_job import LiveJob
from des.cluster.node_set import NodeSet
from des.cluster.policy import Decision, View
from des.cluster.queue_decider import QueueDecider
from des.cluster.waiting_queue import WaitingQueue
from scenarios.cluster.job_state import LaunchedRank, LaunchState, live_job
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.node_state import NodeState


def decide_jobs(cluster: LiveCluster, now_s: float, *, may_preempt: bool) -> None:
    """Let the policy decide, and hold the ranks of jobs that are to leave."""
    if cluster.nodes:
        _decide(cluster, now_s, may_preempt=may_preempt)
    cluster.wants_decision = False  # suspensions of this decision need no other


def _decide(cluster: LiveCluster, now_s: float, *, may_preempt: bool) -> None:
    names = tuple(sorted(cluster.nodes))
    free = _free_of([cluster.nodes[name] for name in names])
    view, arrived = _view(cluster, names, free, now_s)
    _admit(cluster, view, arrived)
    for live in view.waiting.values():
        live.key = cluster.policy.ordering.key(live, now_s)
    queue = WaitingQueue()
    queue.rebuild(view.waiting.values())
    decision = QueueDecider(cluster.policy, view, queue).decide(may_preempt=may_preempt)
    _apply(cluster, decision, names, now_s)


def _free_of(nodes: Sequence[NodeState]) -> FreeCounts:
    free = FreeCounts(NodeSet(nodes=tuple(node.place() for node in nodes)))
    for position, node in enumerate(nodes):
        if node.takes_jobs:
            free.open_node(position)
    return free


def _view(
    cluster: LiveCluster, names: Sequence[str], free: FreeCounts, now_s: float
) -> tuple[View, deque[LiveJob]]:
    """Cluster as policies see it, and jobs that are not admitted yet."""
    position_of = {name: position for position, name in enumerate(names)}
    running: dict[int, LiveJob] = {}
    waiting: dict[int, LiveJob] = {}
    arrived: deque[LiveJob] = deque()
    demand = 0
    for job in sorted(cluster.live_jobs(), key=lambda job: (job.number, job.job_id)):
        live = live_job(job, position_of, now_s, cluster.policy.ordering.quantum_s)
        if job.number < 0:
            arrived.append(live)
            continue
        demand += live.width
        if live.is_running:
            free.take(live.allocation)
        (running if live.is_running else waiting)[job.number] = live
    view = View(now_s=now_s, free=free, running=running, waiting=waiting, demand_gpus=demand)
    return view, arrived


def _admit(cluster: LiveCluster, view: View, arrived: deque[LiveJob]) -> None:
    """Number the jobs that are admitted now, and let them wait."""
    number = max((job.number for job in cluster.jobs.values()), default=-1)
    waiting = dict(view.waiting)
    for live in cluster.policy.admission.admit(view, arrived):
        number += 1
        job = cluster.jobs[live.job.job_id]
        job.number = live.number = number
        waiting[number] = live
        view.demand_gpus += live.width
        cluster.touch(job)
    view.waiting = waiting


def _apply(cluster: LiveCluster, decision: Decision, names: Sequence[str], now_s: float) -> None:
    for live in decision.suspended:
        cluster.suspend(cluster.jobs[live.job.job_id], now_s)
    for live, allocation in decision.launched:
        job = cluster.jobs[live.job.job_id]
        job.launches += 1
        job.current = LaunchState(number=job.launches, ranks=_ranks(allocation, names))
        cluster.note_places(job)
        cluster.touch(job)


def _ranks(allocation: Allocation, names: Sequence[str]) -> list[LaunchedRank]:
    return [
        LaunchedRank(node=names[node], gpu=gpu)
        for node, gpus in allocation
        for gpu in positions(gpus)
    ]
