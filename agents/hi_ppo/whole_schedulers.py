"""Schedulers that decide among plans of all families in every epoch, and what they stand beside."""

from collections.abc import Sequence

import torch

from agents.decision.families import SYNCHRONOUS, Family
from agents.decision.levels import LEVELS
from agents.decision.whole_plan import ProposeGroups
from agents.hi_ppo.coordinator import Coordinator
from agents.hi_ppo.moves.choosing import NamesRules
from agents.hi_ppo.moves.move_network import MoveArchitecture, MoveNetwork
from agents.hi_ppo.moves.move_policy import MovePolicy
from agents.hi_ppo.moves.move_rules import WHOLE_RULES
from agents.hi_ppo.plans.plan_checkpoint import load_plan_policy
from agents.hi_ppo.plans.plan_proposals import (
    proposing_drawn,
    proposing_plans,
    shipped_plan_file,
)
from agents.hi_ppo.plans.simple_proposals import random_groups
from agents.hi_ppo.plans.whole_proposals import WholeProposer
from agents.hi_ppo.policies import Policies, shipped
from agents.hi_ppo.schedulers import FixedRule
from agents.planners.names import MOVING_NAMES
from des import NO_CORRECTIONS, Corrections

_RULE = "decide_h"


def moving_scheduler(
    name: str,
    families: Sequence[Family] = SYNCHRONOUS,
    corrections: Corrections = NO_CORRECTIONS,
) -> Coordinator:
    """Make one of the schedulers of `agents.planners.names.MOVING_NAMES`.

    All search in every epoch, on one budget, and remember what they found. ``decide_moving``
    begins the search from the proposals of the shipped plan policy and moves by the shipped move
    policy, both of seed 0; ``decide_random`` begins from groups drawn at random, and
    ``decide_untrained`` moves by untrained weights; ``decide_h8`` and its like move where
    that pays within that number of epochs.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if name not in MOVING_NAMES:
        raise ValueError(
            f"moving scheduler: name must be one of {', '.join(MOVING_NAMES)}; got {name!r}"
        )
    propose: ProposeGroups = (
        proposing_drawn(random_groups, corrections)
        if name == "decide_random"
        else proposing_plans(load_plan_policy(shipped_plan_file()), corrections)
    )
    return Coordinator(WholeProposer(propose, families=families), _moves_of(name))


def _moves_of(name: str) -> NamesRules | None:
    if name.startswith(_RULE):
        horizon_epochs = float(name.removeprefix(_RULE))
        return FixedRule(WHOLE_RULES.rule(WHOLE_RULES.top, horizon_epochs), WHOLE_RULES)
    if name == "decide_untrained":
        generator = torch.Generator().manual_seed(0)
        return MovePolicy(network=MoveNetwork(MoveArchitecture(levels=LEVELS), generator).eval())
    return Policies.load(shipped()).moves
