"""Reports of nodes: new nodes, lies, the course of ranks, nodes that want to leave."""

from scenarios.cluster.launch_phases import advance_launch, lose_node, rank_ended
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.messages import NodeReport, RankReport
from scenarios.cluster.node_state import Contact, NodeState, node_of


def take_report(cluster: LiveCluster, report: NodeReport, now_s: float) -> bool:
    """Take a node's report; whether a node that wants to leave may go.

    Raises
    ------
    ValueError
        If another process has joined under its name, or it lies about GPUs or ranks; a node
        that lies is taken for lost.
    """
    node = _known(cluster, report, now_s)
    contact = cluster.contacts[node.name]
    if report.number <= contact.number:
        return False  # it was overtaken by a later one
    contact.at_s, contact.number, contact.free_ports = now_s, report.number, report.free_ports
    cluster.look_at(node.name)
    for rank in report.ranks:
        _take(cluster, node, rank, now_s)
    if report.is_leaving and node.presence == "up":
        cluster.set_presence(node, "leaving", "wants to leave")
        for job in cluster.live_jobs():
            if job.current is not None and job.current.is_on(node.name):
                cluster.suspend(job, now_s)
    launches = (launch for job in cluster.jobs.values() for launch in job.on_gpus())
    if node.presence == "leaving" and not any(each.is_on(node.name) for each in launches):
        cluster.set_presence(node, "gone", "has left")
    return node.presence == "gone"


def _known(cluster: LiveCluster, report: NodeReport, now_s: float) -> NodeState:
    """Node of a report: the one that is known, the same in a new process, or a new one."""
    name, node = report.node, cluster.nodes.get(report.node)
    if node is not None and node.incarnation != report.incarnation:
        if not report.is_first and node.is_there:
            raise ValueError(f"node {name}: another process has joined under this name")
        lose_node(cluster, name, "runs in a new process", now_s)
    elif node is not None:
        if report.num_gpus != node.num_gpus:
            message = f"num_gpus must stay {node.num_gpus}, got {report.num_gpus}"
            lose_node(cluster, name, message, now_s)
            raise ValueError(f"node {name}: {message}")
        if node.presence == "lost" or (node.presence == "gone" and not report.is_leaving):
            cluster.set_presence(node, "up", "is back")
        return node
    node = cluster.nodes[name] = node_of(report, node)
    cluster.contacts[name] = Contact(now_s)
    cluster.set_presence(node, "up", f"joins with {node.num_gpus} GPUs")
    return node


def _take(cluster: LiveCluster, node: NodeState, rank: RankReport, now_s: float) -> None:
    job = cluster.jobs.get(rank.job)
    launch = None if job is None else job.launch(rank.launch)
    if job is None or launch is None:
        return  # of an earlier launch, or of another state: orders without it end it
    at = f"rank {rank.rank} of job {rank.job}"
    own = launch.ranks[rank.rank] if 0 <= rank.rank < len(launch.ranks) else None
    if own is None or own.node != node.name or launch.phase == "reserved":
        lose_node(cluster, node.name, f"reports {at}, which it was never to have", now_s)
        raise ValueError(f"node {node.name}: reports {at}, which it was never to have")
    if own.has_ended or own.incarnation != node.incarnation:
        return
    own.begun, own.is_frozen = max(own.begun, rank.begun), rank.is_frozen
    job.iteration = max(job.iteration, rank.begun)
    if rank.rank == 0 and rank.metrics:
        job.take_metrics(rank.metrics)
    if rank.has_ended:
        rank_ended(cluster, job, launch, rank, now_s)
    advance_launch(cluster, job, launch, now_s)
