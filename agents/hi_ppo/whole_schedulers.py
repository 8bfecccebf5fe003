"""Schedulers that decide among plans of all families in every epoch, by a rule or learned moves."""

from collections.abc import Sequence

from agents.decision.families import SYNCHRONOUS, Family
from agents.hi_ppo.coordinator import Coordinator
from agents.hi_ppo.moves.move_policy import MovePolicy
from agents.hi_ppo.moves.move_rules import WHOLE_RULES
from agents.hi_ppo.schedulers import FixedRule
from agents.hi_ppo.whole_proposals import WholeProposer
from agents.planners.names import MOVING_NAMES
from agents.ppo.shipped_weights import shipped_weights_of
from des.base.checks import require_one_of

_RULE, _LEARNED = "decide_h", "decide_learned"


def moving_scheduler(name: str, families: Sequence[Family] = SYNCHRONOUS) -> Coordinator:
    """Make one of the schedulers of `agents.planners.names.MOVING_NAMES`.

    All search in every epoch and remember what they found. ``decide_h8`` and its like move where
    that pays within that number of epochs, ``decide_learned`` by the shipped policy of seed 0 for
    moves among all families.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    require_one_of("moving scheduler", "name", name, MOVING_NAMES)
    proposer = WholeProposer(families=families)
    if name == _LEARNED:
        return Coordinator(proposer, MovePolicy.load(shipped_weights_of("moves", 0)))
    rule = WHOLE_RULES.rule(WHOLE_RULES.top, float(name.removeprefix(_RULE)))
    return Coordinator(proposer, FixedRule(rule, WHOLE_RULES))
