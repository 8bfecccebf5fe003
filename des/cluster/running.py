"""Runs of a cluster under a policy."""

from des.cluster.blox_rounds import run_blox_rounds
from des.cluster.engine import QueueEngine
from des.cluster.history import History
from des.cluster.plain_pricing import PlainPricing
from des.cluster.policy import Policy, Pricing, Watch
from des.cluster.world import World


def run(
    world: World,
    policy: Policy,
    seed: int = 0,
    *,
    pricing: Pricing | None = None,
    watch: Watch | None = None,
) -> History:
    """Simulate a cluster whose jobs a policy schedules.

    Parameters
    ----------
    seed
        Seed of failures and repairs; workloads have seeds of their own.
    pricing
        Rates and restarts of jobs (default: plain ones at the world's replacement cost).
    watch
        Called at every decision that suspends or launches, before it takes effect on jobs.

    Raises
    ------
    ValueError
        If jobs arrive out of order, tracked jobs never arrive, or a job is wider than the cluster
        where such jobs are refused.

    Notes
    -----
    Under the rules of Blox there is no seed and no price: a world with them is wholly determined.
    """
    if world.blox is not None:
        return run_blox_rounds(world, policy, watch=watch)
    prices = pricing or PlainPricing(replacement=world.replacement)
    return QueueEngine(world, policy, prices, seed, watch).history()
