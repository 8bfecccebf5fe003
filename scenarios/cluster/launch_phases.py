"""Course of a launch: its ranks are held, agree on an iteration, leave, end, fail or are lost."""

from scenarios.cluster.job_state import JobState, LaunchState
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.messages import RankReport


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


def lose_silent_nodes(cluster: LiveCluster, now_s: float) -> bool:
    """Take nodes for lost that have not reported for the time of their lease."""
    silent = [
        name
        for name, node in cluster.nodes.items()
        if node.is_there and now_s - cluster.contacts[name].at_s >= cluster.lease_s
    ]
    for name in silent:
        lose_node(cluster, name, f"has not reported for {cluster.lease_s:g} s", now_s)
    return bool(silent)


def lose_node(cluster: LiveCluster, name: str, reason: str, now_s: float) -> None:
    """Take a node for lost: its jobs wait again, and continue from their last checkpoint."""
    if cluster.nodes[name].is_there:
        cluster.set_presence(cluster.nodes[name], "lost", reason)
    for job in cluster.jobs.values():
        for launch in job.launches_held():
            if launch.is_on(name):
                _lose_launch(cluster, job, launch, name, now_s)


def _lose_launch(
    cluster: LiveCluster, job: JobState, launch: LaunchState, name: str, now_s: float
) -> None:
    if launch is job.current:
        was_running = launch.phase == "running"
        job.give_up_current(now_s)
        if was_running:
            job.state = "waiting"
            job.failures += 1
            cluster.say(f"job {job.job_id} lost node {name} and waits again")
    launch.phase = "ending"
    for rank in launch.ranks:
        if rank.node == name:
            rank.has_ended, rank.left = True, "lost"
    cluster.touch(job)
    advance_launch(cluster, job, launch, now_s)
