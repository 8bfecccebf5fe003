"""Loads of domains over a run of a queue: GPUs in use, and jobs that wait."""

from collections import defaultdict

from des.cluster.history import History
from des.cluster.node_set import NodeSet
from des.world.domain_load import DomainLoad


def domain_loads(
    history: History, nodes: NodeSet, *, share: float = 0.5
) -> dict[str, tuple[tuple[float, DomainLoad], ...]]:
    """Changes of the load of each domain: (time, load), in order of time.

    Parameters
    ----------
    history
        A run that kept the stays of its tracked jobs, and tracked all.
    share
        Share of each domain's GPUs that the nodes of the queue are; the rest is free of it.

    Notes
    -----
    A GPU that a job holds is taken with its memory. A job that waits does so for every domain, as
    it may run in any. After the arrival of the last job the loads are those of a queue that drains.

    Raises
    ------
    ValueError
        If the share is out of range, or no stays were kept.
    """
    if not 0.0 < share < 1.0:
        raise ValueError(f"loads of domains: share must be within (0, 1), got {share!r}")
    if not history.stays:
        raise ValueError("loads of domains: history must have stays of its jobs, got none")
    gpus_of: dict[str, int] = defaultdict(int)
    for node in nodes.nodes:
        gpus_of[node.domain] += node.num_gpus
    held: dict[float, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for stay in history.stays:
        domain = nodes.nodes[stay.node].domain
        held[stay.start_s][domain] += stay.num_gpus
        held[stay.end_s][domain] -= stay.num_gpus
    waiting = _changes_of_waiting(history)
    found: dict[str, list[tuple[float, DomainLoad]]] = {domain: [] for domain in gpus_of}
    in_use, num_waiting = dict.fromkeys(gpus_of, 0), 0
    for time_s in sorted({*held, *waiting}):
        num_waiting += waiting.get(time_s, 0)
        for domain, changes in found.items():
            in_use[domain] += held[time_s][domain] if time_s in held else 0
            taken = share * in_use[domain] / gpus_of[domain]
            load = DomainLoad(
                utilisation=taken, memory_occupancy=taken, queue_length=float(num_waiting)
            )
            if not changes or changes[-1][1] != load:
                changes.append((time_s, load))
    return {domain: tuple(changes) for domain, changes in found.items()}


def _changes_of_waiting(history: History) -> dict[float, int]:
    """Jobs that begin to wait, less those that cease to, at each time."""
    runs: dict[int, set[tuple[float, float]]] = defaultdict(set)
    for stay in history.stays:
        runs[stay.job_id].add((stay.start_s, stay.end_s))
    found: dict[float, int] = defaultdict(int)
    for job in history.jobs:
        found[job.arrival_s] += 1
        for start_s, end_s in runs[job.job_id]:
            found[start_s] -= 1
            found[end_s] += 1
        found[job.finish_s] -= 1
    return found
