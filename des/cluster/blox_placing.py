"""Placement of Blox: node by node, with a test of the exact count."""

from des.cluster.free_gpus import Allocation, FreeCounts, lowest_bit, positions
from des.cluster.queued_job import QueuedJob
from des.cluster.world import BloxRules


def place_as_blox(free: FreeCounts, job: QueuedJob, rules: BloxRules) -> Allocation | None:
    """GPUs of a job as Blox chooses them, or None.

    A consolidated job takes the first node that has exactly as many free GPUs as it needs. Others
    go through the nodes by number and take what is free on each, at most their number; with
    ``takes_exactly`` the placement fails where the sum jumps over that number.
    """
    needed = job.num_gpus
    if job.consolidated:
        return _consolidated(free, needed, rules)
    if needed > free.num_free:
        return None
    found: list[tuple[int, int]] = []
    num_taken = 0
    for node in positions(free.nodes_with(1)):
        wanted = needed if rules.takes_exactly else needed - num_taken
        count = min(wanted, free.free_of[node])
        found.append(free.first_gpus(node, count))
        num_taken += count
        if num_taken == needed:
            return tuple(found)
        if num_taken > needed:
            return None
    return None


def _consolidated(free: FreeCounts, needed: int, rules: BloxRules) -> Allocation | None:
    if needed > free.most_per_node:
        return None
    exact = free.with_free[needed]
    fits = exact if rules.takes_exactly else free.nodes_with(needed)
    return (free.first_gpus(lowest_bit(fits), needed),) if fits else None
