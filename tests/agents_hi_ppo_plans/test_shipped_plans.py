"""The plan policies that come with the package."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from agents.hi_ppo.plans.plan_checkpoint import load_plan_policy
from agents.hi_ppo.plans.plan_proposals import (
    proposing_groups,
    shipped_plan_file,
    shipped_plan_files,
)
from agents.hi_ppo.plans.plan_worlds import plan_world
from agents.hi_ppo.plans.simple_proposals import neighbour_groups, random_groups
from agents.hi_ppo.policies import digest_of
from scenarios.train.plan_networks import plan_networks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hi-ppo.md"


def test_hashes_on_the_page_are_those_of_the_files():
    page = PAGE.read_text("utf-8")
    files = shipped_plan_files()
    assert [one.name for one in files] == ["plans-0.pt", "plans-1.pt", "plans-2.pt"]
    for path in files:
        assert f"| `{path.name}` | `{digest_of(path)}` |" in page


def test_a_seed_that_is_not_shipped_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match="seed must be one of 0, 1, 2; got 7"):
        shipped_plan_file(7)


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
