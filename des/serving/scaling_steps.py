"""Changes that bring a pool to the size decided: what is cancelled, kept, drained and ordered."""

import math
from collections.abc import Mapping, Sequence

from des.serving.fleet_members import FleetMember
from des.serving.fleet_settings import ScalingLimits
from des.serving.fleet_world import PROMPT, TOKEN, Decision
from des.serving.instance_life import ACTIVE, DRAINING, STARTING


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
        high = now + limits.max_step
        if limits.max_per_pool is not None:
            high = min(high, max(limits.max_per_pool, low))
        found[pool] = min(max(wanted, low), high)
    while sum(max(found[pool], ordered[pool]) for pool in found) + num_draining > limits.max_total:
        growing = [pool for pool in found if found[pool] > ordered[pool]]
        if not growing:
            break
        found[max(growing, key=lambda pool: found[pool] - ordered[pool])] -= 1
    return found


def blocked(
    wished: Mapping[str, int],
    counts: Mapping[str, int],
    ordered: Mapping[str, int],
    limits: ScalingLimits,
) -> list[str]:
    """Say which limits `bounded` held against a decision: the least of a pool, the whole.

    Examples
    --------
    >>> limits = ScalingLimits(min_per_pool=1, max_total=3)
    >>> wished, ordered = {"prompt": 0, "token": 3}, {"prompt": 1, "token": 2}
    >>> blocked(wished, bounded(wished, ordered, 0, limits), ordered, limits)
    ['Cannot remove prompt, min limit reached', 'Max cluster size reached (3)']
    """
    lines = [
        f"Cannot remove {pool}, min limit reached"
        for pool, now in ordered.items()
        if wished.get(pool, now) < counts[pool] == limits.min_per_pool
    ]
    most = {
        pool: min(wished.get(pool, now), now + limits.max_step) for pool, now in ordered.items()
    }
    if limits.max_per_pool is not None:
        most = {pool: min(num, limits.max_per_pool) for pool, num in most.items()}
    if any(ordered[pool] <= counts[pool] < most[pool] for pool in ordered):
        lines.append(f"Max cluster size reached ({limits.max_total})")
    return lines


def to_remove(
    instances: Sequence[FleetMember],
    num: int,
    mean_output: float | None = None,
    *,
    num_kept: int = 0,
) -> list[FleetMember]:
    """Instances to give up: the least loaded active ones, then starting ones, the newest first.

    The load is that of the pool, see `member_load`. With a mean answer, those that are expected to
    be empty first in place of the least loaded. At least ``num_kept`` active ones stay.
    """
    starting = [one for one in reversed(instances) if one.state == STARTING]
    active = [one for one in reversed(instances) if one.state == ACTIVE]
    if mean_output is None:
        active.sort(key=member_load)
    else:
        active.sort(key=lambda one: drain_s(one, mean_output))
    return (active[: max(len(active) - num_kept, 0)] + starting)[:num]


def member_load(one: FleetMember) -> int:
    """Load of an instance: prompt tokens to read, tokens in memory, or requests, by its pool."""
    return {PROMPT: one.due_tokens, TOKEN: one.used}.get(one.pool, one.present)


def drain_s(one: FleetMember, mean_output: float) -> float:
    """Time until an instance is expected to be empty, where it takes no more requests. [s]

    Its prompts are read, then its requests decode together until the one with most left has written
    an answer of mean length; a longer one has a token left.
    """
    if not one.present:
        return 0.0
    times, (tokens, written) = one.engine.times, one.tokens_present()
    left = math.ceil(max(mean_output - written, 1.0))
    return times.per_prompt_token_s * one.due_tokens + times.run_s(left, one.present, tokens)


def to_keep(instances: Sequence[FleetMember], num: int) -> list[FleetMember]:
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
