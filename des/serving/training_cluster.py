"""Applications on the nodes of a cluster where jobs train: instances claim GPUs, jobs give way."""

from collections.abc import Mapping
from dataclasses import dataclass

from des.base.checks import require_known
from des.clock import MEDIUM, Clock
from des.cluster import history as cluster_history
from des.cluster import policy as cluster_policy
from des.cluster import world as cluster_world
from des.cluster.claims import ClaimedCluster
from des.serving.applications import Application, run_on_servers
from des.serving.arbiters import ARBITERS
from des.serving.cluster_servers import ClusterServers
from des.serving.fleet_world import History, require_run_seed


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSide:
    """The cluster, its jobs and the policy that schedules them.

    ``policy`` decides which jobs give way to an instance: those that its ordering puts behind a
    claim of the priority of the application, as its preemption chooses them.
    """

    world: cluster_world.World
    policy: cluster_policy.Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedHistory:
    """Histories of the applications and of the cluster, and claims that it refused."""

    applications: Mapping[str, History]
    training: cluster_history.History
    num_refused: int


def run_with_training(
    applications: Mapping[str, Application],
    training: TrainingSide,
    *,
    arbiter: str = "max_min",
    seed: int = 0,
) -> SharedHistory:
    """Simulate applications and jobs on one cluster until all requests and all jobs are finished.

    Instances of the start are claimed before any job runs. A claim that is refused is ordered again
    where the policy of the application still wants it.

    Raises
    ------
    ValueError
        If there is no application, intervals of decisions differ, the arbiter is unknown, or the
        instances of the start do not fit on the nodes.
    """
    require_run_seed(seed)
    require_known("cluster: arbiter must be a known name, got", arbiter, ARBITERS)
    clock = Clock()
    cluster = ClaimedCluster(training.world, training.policy, clock=clock, seed=seed)
    servers = {
        name: ClusterServers(
            cluster=cluster,
            owner=name,
            num_gpus=max(one.num_gpus for one in each.world.all_engines),
            priority=each.priority,
        )
        for name, each in applications.items()
    }
    clock.run(until=clock.at(0.0, MEDIUM - 1))  # nodes have joined, no job has its GPUs
    histories = run_on_servers(applications, arbiter, clock, servers, seed)
    return SharedHistory(
        applications=histories, training=cluster.history(), num_refused=cluster.num_refused
    )
