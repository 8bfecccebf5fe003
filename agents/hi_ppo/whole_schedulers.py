"""Schedulers that decide among plans of all families in every epoch, by a rule or learned moves."""

from collections.abc import Sequence

from agents.decision.families import SYNCHRONOUS, Family
from agents.decision.whole_plan import ProposeGroups
from agents.hi_ppo.coordinator import Coordinator
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
from agents.hi_ppo.schedulers import FixedRule
from agents.planners.names import MOVING_NAMES
from agents.ppo.shipped_weights import shipped_weights_of
from des import NO_CORRECTIONS, Corrections

_RULE, _RANDOM, _LEARNED = "decide_h", "decide_random", "decide_learned"
_USUAL_EPOCHS = 8.0


def moving_scheduler(
    name: str,
    families: Sequence[Family] = SYNCHRONOUS,
    corrections: Corrections = NO_CORRECTIONS,
) -> Coordinator:
    """Make one of the schedulers of `agents.planners.names.MOVING_NAMES`.

    All search in every epoch, on one budget, and remember what they found. ``decide_h8`` and its
    like begin the search from the proposals of the shipped plan policy of seed 0, and move where
    that pays within that number of epochs; ``decide_random`` is ``decide_h8`` with groups drawn at
    random in place of these proposals, and ``decide_learned`` moves by the shipped policy of seed 0
    for moves among all families.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if name not in MOVING_NAMES:
        raise ValueError(
            f"moving scheduler: name must be one of {', '.join(MOVING_NAMES)}; got {name!r}"
        )
    is_random = name == _RANDOM
    propose: ProposeGroups = (
        proposing_drawn(random_groups, corrections)
        if is_random
        else proposing_plans(load_plan_policy(shipped_plan_file()), corrections)
    )
    proposer = WholeProposer(propose, families=families)
    if name == _LEARNED:
        return Coordinator(proposer, MovePolicy.load(shipped_weights_of("moves", 0)))
    horizon_epochs = _USUAL_EPOCHS if is_random else float(name.removeprefix(_RULE))
    rule = WHOLE_RULES.rule(WHOLE_RULES.top, horizon_epochs)
    return Coordinator(proposer, FixedRule(rule, WHOLE_RULES))
