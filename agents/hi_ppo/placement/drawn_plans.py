"""Plans sampled from a placement policy without search."""

import numpy as np
import torch

from agents.decision.depths import DEPTHS
from agents.hi_ppo.placement.drawn_orders import decode_orders, depth_plans
from agents.hi_ppo.placement.encoder import networks_of
from agents.hi_ppo.placement.features import Features
from agents.hi_ppo.placement.placement_policy import PlacementPolicy, orders_of, scores_of
from agents.judge.look_ahead import PlanJudge
from des import Plan
from des.base.checks import require_count
from des.compiled.many.steady import Job


@torch.no_grad()
def drawn_plans(
    policy: PlacementPolicy,
    features: Features,
    judge: PlanJudge,
    job: Job,
    *,
    count: int,
    rng: np.random.Generator,
) -> list[Plan]:
    """Draw orders, and for each one a depth; layers are shared out as the policy says on average.

    The first order is the likeliest one. Plans whose layers do not fit are left out.
    """
    require_count("drawn plans", "count", count)
    networks = networks_of([features])
    encoded, scores = policy(networks)
    num_domains = len(features.nodes)
    noise = rng.gumbel(size=(count, num_domains + 1, num_domains + 1)).astype(np.float32)
    noise[0] = 0.0
    drawn = decode_orders(scores_of(scores, 0), features.facts, noise, judge.most_stages)
    orders = orders_of([drawn])
    logits = policy.heads.depth_logits(networks, encoded, orders)[0].numpy()
    depths = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    tilts = policy.heads.tilts(encoded, orders)[0].numpy().astype(np.float64)
    plans = depth_plans(drawn, judge.most_stages, range(len(DEPTHS)))
    weights = np.exp(tilts[:, : judge.most_stages]).repeat(len(DEPTHS), axis=0)
    levels_s = judge.fill_by(job, plans, np.ascontiguousarray(weights))
    rows = np.arange(count) * len(DEPTHS) + depths
    return [judge.plan(plans, row) for row in rows.tolist() if np.isfinite(levels_s[row])]
