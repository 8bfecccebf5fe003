"""Files of a launch of the reference runtime: a rank for each device of the plan."""

from collections.abc import Mapping
from itertools import groupby

from agents.decision.bound_plan import BoundPlan
from scenarios.iteration.launch_folder import LaunchHost
from scenarios.iteration.reference_launch import as_run, ranked_devices, runtime_files
from scenarios.launch.site_hosts import SiteHosts


def reference_files(
    bound: BoundPlan, hosts: Mapping[int, SiteHosts]
) -> tuple[dict[str, str], dict[str, tuple[LaunchHost, ...]]]:
    """Return what the runtime runs, and hosts with the number of ranks on each.

    Raises
    ------
    ValueError
        If the runtime cannot run the plan.
    """

    def host_of(device: tuple[int, int]) -> tuple[int, int]:
        domain, number = device
        size = bound.plan.parallelism[domain].gpus_per_device
        return domain, number * size // hosts[domain].num_gpus

    runs = groupby(ranked_devices(bound), key=host_of)
    own = tuple(
        LaunchHost(
            rank=rank,
            name=hosts[domain].names[host],
            num_gpus=len(list(run)),
            site=bound.topology.domains[domain].name,
        )
        for rank, ((domain, host), run) in enumerate(runs)
    )
    return runtime_files(as_run(bound)), {"": own}
