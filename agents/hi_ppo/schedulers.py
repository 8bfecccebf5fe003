"""Schedulers made of trained policies, alone or with a fixed rule for moves."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agents.decision.situation import MakeScheduler, Scheduler
from agents.hi_ppo.coordinator import QUICK, Coordinator, coordinator_of
from agents.hi_ppo.moves.move_observer import MoveObservation
from agents.hi_ppo.moves.move_rules import PIPELINE_RULES, MoveRule, RuleSet
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.policies import Policies, shipped_files
from agents.hi_ppo.proposing import proposing
from agents.planners.pareto.proposals import Propose

MOST_SLOWDOWN = 0.1
"""Bound of policies that are to be stable: so much longer than an iteration of the quickest plan
that they know may one of theirs take. It is the bound by which they are judged, against a search
that seldom finds a quicker plan than those known; chosen on worlds of seed 4."""


def policy_scheduler(
    checkpoint: Path, most_slowdown: float | None = None
) -> tuple[MakeScheduler, Propose]:
    """Return what makes schedulers of trained policies, and what these propose for preferences.

    All share what they know of a job. ``most_slowdown`` is that of
    `agents.hi_ppo.coordinator.Coordinator`.

    Raises
    ------
    ValueError
        If the file cannot be read or is no checkpoint of such policies.
    """
    policies = Policies.load(checkpoint)
    proposer = Proposer(policies.placement, look_ahead=QUICK)

    return partial(coordinator_of, policies, most_slowdown, proposer), proposing(proposer)


def make_shared_scheduler(checkpoint: Path | None = None) -> MakeScheduler | None:
    """Return what hands out the scheduler of a checkpoint, or of the first one that is shipped.

    None where no checkpoint is given and none is shipped. One scheduler serves all draws, each of
    which starts without history, so that the tables of a job are computed once.

    Raises
    ------
    ValueError
        If the file cannot be read or holds no such policies.
    """
    path = checkpoint or next(iter(shipped_files()), None)
    if path is None:
        return None
    make, _ = policy_scheduler(path)
    scheduler = make()
    return lambda: scheduler


FIXED_HORIZONS = (4.0, 8.0, 16.0)
"""Horizons of rules that choose among the proposals of a placement policy. [epochs]"""


@dataclass(frozen=True, slots=True)
class FixedRule:
    """A move policy that names the same rule whatever it sees."""

    rule: MoveRule
    rule_set: RuleSet = PIPELINE_RULES

    def choose(self, observation: MoveObservation) -> MoveRule:
        """Return the rule."""
        return self.rule


def make_fixed_rule_schedulers(checkpoint: Path) -> Mapping[str, MakeScheduler]:
    """Return what makes schedulers that propose as trained policies do and move by one rule.

    The rules are those of `agents.replanning.rules.Horizon` on the plans proposed so far, by the
    names that they have there; errors are those of `policy_scheduler`.
    """
    policies = Policies.load(checkpoint)
    proposer = Proposer(policies.placement, look_ahead=QUICK)

    def make(rule: MoveRule) -> Scheduler:
        return Coordinator(proposer, FixedRule(rule), trained_range=policies.trained_range)

    return {
        f"H{horizon:g}": partial(make, PIPELINE_RULES.rule("order", horizon))
        for horizon in FIXED_HORIZONS
    }
