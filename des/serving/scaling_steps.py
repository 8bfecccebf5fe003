"""Changes that bring a pool to the size decided: what is cancelled, kept, drained and ordered."""

from collections.abc import Mapping, Sequence

from des.serving.fleet_instance import ACTIVE, DRAINING, STARTING, FleetInstance
from des.serving.fleet_world import Decision, ScalingLimits


def bounded(
    counts: Mapping[str, int], ordered: Mapping[str, int], num_draining: int, limits: ScalingLimits
) -> dict[str, int]:
    """Counts decided, within the limits of a step, of a pool and of the whole.

    A pool never gets fewer than its least. Where the whole would be too large, the pools that grow
    give up one after the other, the one that grows most first.
    """
    found = {}
    for pool, now in ordered.items():
        wanted = counts.get(pool, now)
        low = max(now - limits.max_step, limits.min_per_pool)
        found[pool] = min(max(wanted, low), now + limits.max_step)
    while sum(max(found[pool], ordered[pool]) for pool in found) + num_draining > limits.max_total:
        growing = [pool for pool in found if found[pool] > ordered[pool]]
        if not growing:
            break
        found[max(growing, key=lambda pool: found[pool] - ordered[pool])] -= 1
    return found


def to_remove(instances: Sequence[FleetInstance], num: int) -> list[FleetInstance]:
    """Instances to give up: starting ones first, the newest first, then the emptiest."""
    starting = [one for one in reversed(instances) if one.state == STARTING]
    active = [one for one in reversed(instances) if one.state == ACTIVE]
    active.sort(key=lambda one: one.present)
    return (starting + active)[:num]


def to_keep(instances: Sequence[FleetInstance], num: int) -> list[FleetInstance]:
    """Draining instances of a pool that can serve again, those with most requests first."""
    draining = [one for one in instances if one.state == DRAINING and one.next_pool is None]
    draining.sort(key=lambda one: -one.present)
    return draining[:num]


def require_decision(decision: Decision, pools: Sequence[str]) -> None:
    """Refuse a decision about pools that there are not, or with counts below 0.

    Raises
    ------
    ValueError
        Naming the pool.
    """
    for pool, num in decision.counts.items():
        if pool not in pools:
            raise ValueError(f"decision: counts must be of the pools {list(pools)}, got {pool!r}")
        if isinstance(num, bool) or not isinstance(num, int) or num < 0:
            raise ValueError(
                f"decision: {pool} must be a whole number of instances, at least 0, got {num!r}"
            )
