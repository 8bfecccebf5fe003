"""Controls of trained policies: the same schedulers, with a part that has learnt nothing."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from agents.decision.situation import MakeScheduler
from agents.hi_ppo.coordinator import QUICK, coordinator_of
from agents.hi_ppo.placement.decode import DrawnOrders
from agents.hi_ppo.placement.features import Features
from agents.hi_ppo.placement.proposals import Draw, Proposer, draw_at_random
from agents.hi_ppo.policies import Policies, TrainedRange
from agents.judge.look_ahead import LookAhead
from agents.planners.choice.chains import grow_chain
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from agents.hi_ppo import first_policies

Control = Literal["untrained", "random", "neighbours"]
"""Part that has learnt nothing: all weights; the proposals, which are random orders; or these,
which are chains of nearest neighbours. Moves of the last two are decided by trained weights."""

CONTROLS: tuple[Control, ...] = ("untrained", "random", "neighbours")


def untrained_policies(trained_range: TrainedRange, seed: int = 0) -> Policies:
    """Draw policies that have learnt nothing: the measure of what training is worth."""
    placement, moves = first_policies.untrained(seed)
    return Policies(
        placement=placement,
        moves=moves,
        trained_range=trained_range,
        training={"seed": seed, "updates": 0},
    )


def neighbour_orders(features: Features, most_stages: int, count: int, seed: int) -> DrawnOrders:
    """Grow chains along the best links, from any domain to any length; the first has all domains.

    Parameters
    ----------
    features
        Of K domains, see `agents.hi_ppo.placement.features.features_of`.
    most_stages
        Domains of an order at most.
    count
        Orders, N.
    seed
        For where chains begin and how long they are.

    Returns
    -------
    DrawnOrders
        Domains (N, K) and lengths (N,).
    """
    rng = np.random.default_rng(seed)
    num_domains = len(features.nodes)
    can_follow, log_ratio = features.facts.can_follow, features.facts.log_ratio.astype(np.float64)
    speed = np.where(can_follow, np.exp(-log_ratio), 0.0)
    domains = np.zeros((count, num_domains), dtype=np.int32)
    sizes = np.zeros(count, dtype=np.int32)
    first = rng.permutation(num_domains)
    for row in range(count):
        chain = grow_chain(speed, int(first[row % num_domains]))[:most_stages]
        size = len(chain) if row < num_domains else int(rng.integers(1, len(chain) + 1))
        domains[row, :size], sizes[row] = chain[:size], size
    return DrawnOrders(domains, sizes, np.zeros(count, dtype=np.float32))


_DRAWS: Mapping[Control, Draw] = {"random": draw_at_random, "neighbours": neighbour_orders}


def control_proposer(control: Control, *, look_ahead: LookAhead = QUICK, seed: int = 0) -> Proposer:
    """Return the proposer of a control, untrained weights those of ``seed``, with a look-ahead."""
    if control == "untrained":
        placement, _ = first_policies.untrained(seed)
        return Proposer(placement, look_ahead=look_ahead)
    return Proposer(None, look_ahead=look_ahead, draw=_DRAWS[control])


def control_scheduler(
    policies: Policies, control: Control, most_slowdown: float | None = None
) -> MakeScheduler:
    """Return what makes schedulers of a control; all share what they know of a job.

    ``most_slowdown`` is that of `agents.hi_ppo.coordinator.Coordinator`.
    """
    if control == "untrained":
        policies = replace(policies, moves=first_policies.untrained(0)[1])
    return partial(coordinator_of, policies, most_slowdown, control_proposer(control))
