"""Course of a launch: its ranks are held, agree on an iteration, leave, end or fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.cluster.job_state import JobState, LaunchState
from scenarios.cluster.messages import RankReport

if TYPE_CHECKING:
    from scenarios.cluster.live_cluster import LiveCluster


def rank_ended(
    cluster: LiveCluster, job: JobState, launch: LaunchState, report: RankReport, now_s: float
) -> None:
    """Take the end of a rank: in order, told to leave, cut off from the scheduler, or a failure."""
    own = launch.ranks[report.rank]
    own.has_ended, own.left = True, report.left
    cluster.touch(job)
    if launch.phase == "ending" or job.has_ended:
        return
    if report.left == "fence":
        if launch is job.current:
            job.give_up_current(now_s)
            job.state = "waiting"
            job.failures += 1
        launch.phase = "ending"
        cluster.wants_decision = True
        cluster.say(f"job {job.job_id} waits again: node {own.node} had no contact")
    elif report.reason or (report.code and report.left != "signal"):
        reason = report.reason or f"exit code {report.code}"
        job.end("failed", f"rank {report.rank} on {own.node}: {reason}", now_s)
        cluster.wants_decision = True
        cluster.say(f"job {job.job_id} failed: {job.reason}")


def advance_launch(cluster: LiveCluster, job: JobState, launch: LaunchState, now_s: float) -> None:
    """Let a launch go to its next phase if its ranks are there.

    No rank begins an iteration while all are held, so the last one begun by any of them is known:
    all leave after it.
    """
    if launch.phase == "held" and not launch.is_over():
        if all(rank.is_frozen or rank.has_ended for rank in launch.ranks):
            launch.leaves_at = launch.begun() + 1
            launch.phase = "leaving"
            cluster.touch(job)
        return
    if not launch.is_over():
        return
    is_done = launch.phase != "ending" and not any(rank.left for rank in launch.ranks)
    if is_done and not job.has_ended:
        job.end("done", "", now_s)
        cluster.say(f"job {job.job_id} is done")
    elif launch.phase == "leaving":
        cluster.say(f"job {job.job_id} has left before iteration {launch.leaves_at}")
    if job.old is launch:
        job.old = None
    cluster.wants_decision = True
    cluster.touch(job)
