"""The plan policies that come with the package."""

from itertools import islice

import numpy as np

from agents.hi_ppo.plans.plan_checkpoint import load_plan_policy
from agents.hi_ppo.plans.plan_proposals import proposing_groups, shipped_plan_file
from agents.hi_ppo.plans.plan_worlds import plan_world
from agents.hi_ppo.plans.simple_proposals import neighbour_groups, random_groups
from scenarios.train.plan_networks import plan_networks


def test_learned_proposals_are_quicker_than_simple_ones_on_networks_of_another_seed():
    methods = {
        "learned": proposing_groups(load_plan_policy(shipped_plan_file())),
        "random": random_groups,
        "neighbours": neighbour_groups,
    }
    networks = (one for one in plan_networks(987_654) if 10 <= one[0].num_domains <= 32)
    costs = {name: [] for name in methods}
    for network in islice(networks, 6):
        world = plan_world(*network)
        for name, propose in methods.items():
            groups = propose(world, 32, np.random.default_rng(0))
            costs[name].append(float(world.costs(groups).min()))
    mean = {name: np.mean(own) for name, own in costs.items()}
    assert mean["learned"] < mean["neighbours"] < mean["random"]
