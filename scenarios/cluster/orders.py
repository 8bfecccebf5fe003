"""Orders of a real cluster: all ranks that a node is to have, at any moment."""

from scenarios.cluster.job_state import JobState, LaunchedRank, LaunchState
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.messages import NodeOrders, RankOrder


def node_orders(cluster: LiveCluster, name: str) -> NodeOrders:
    """All ranks that a node is to have."""
    found = [
        _order(job, launch, number, rank)
        for job in cluster.jobs_on(name)
        for launch in job.on_gpus()
        for number, rank in enumerate(launch.ranks)
        if rank.node == name and not rank.has_ended
    ]
    return NodeOrders(grace_s=cluster.grace_s, ranks=found)


def _order(job: JobState, launch: LaunchState, number: int, rank: LaunchedRank) -> RankOrder:
    return RankOrder(
        job=job.job_id,
        launch=launch.number,
        rank=number,
        world_size=len(launch.ranks),
        gpu=rank.gpu,
        gpus=launch.gpus_of()[rank.node],
        master_address=launch.master_address,
        master_port=launch.master_port,
        command=job.command(),
        folder=job.form.folder,
        uses_lease=job.form.uses_lease,
        is_held=launch.phase == "held",
        leaves_at=launch.leaves_at,
        is_killed=launch.phase == "ending",
    )
