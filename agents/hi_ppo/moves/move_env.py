"""Episodes as games: every state that rules can lead to, and what each choice there costs.

Links and load do not care for plans, so all that a policy sees and pays in an episode follows from
the epoch and the plan in force. A game lists these states once; to play it is to look up numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from agents.hi_ppo.moves.move_costs import MoveCosts
from agents.hi_ppo.moves.move_observation import MoveMemory, MoveView
from agents.hi_ppo.moves.move_rules import PIPELINE_RULES, Rows, RuleSet, work_left
from des.compiled.many.layout import Real, Whole

_T = TypeVar("_T", bound=np.generic)


@dataclass(frozen=True, kw_only=True)
class MoveGame:
    """Episodes of S states; a choice is a plan that one or more rules take, up to U a state.

    Attributes
    ----------
    observation
        Observations of the policy, (S, D).
    epoch
        Of each state, (S,).
    plan
        In force before the choice, by number, (S,).
    choice_of_rule
        Choice of each rule, (S, R).
    chosen
        Plan of each choice, by number, (S, U); -1 where a state has fewer.
    cost
        Of each choice and the epoch that follows, (S, U): 2 less its work over that of a mean epoch
        of the clairvoyant of the episode, who pays 1; ``inf`` where a state has fewer. The first
        plan is free.
    following
        State that each choice leads to, (S, U); S where the episode ends.
    starts
        First state of each episode, (G,).
    num_epochs
        Of each episode, (G,).
    unit
        Work of a mean epoch of the clairvoyant in that of the static plan at base, (G,).
    """

    observation: npt.NDArray[np.float32]
    epoch: Whole
    plan: Whole
    choice_of_rule: npt.NDArray[np.uint8]
    chosen: Whole
    cost: Real
    following: Whole
    starts: Whole
    num_epochs: Whole
    unit: Real

    @property
    def num_states(self) -> int:
        """Number of states, S."""
        return len(self.epoch)

    @cached_property
    def states_of_epoch(self) -> tuple[Whole, ...]:
        """States of all episodes, epoch by epoch."""
        order = np.argsort(self.epoch, kind="stable")
        counts = np.bincount(self.epoch)
        return tuple(np.split(order, np.cumsum(counts)[:-1]))

    def values(self, probability: Real) -> tuple[Real, Real]:
        """Cost to come of choices (S, U) and of states (S + 1,), under a policy.

        ``probability`` is that of each choice in each state, (S, U); the last value is 0: nothing
        comes after the end.
        """
        of_choice = np.zeros_like(self.cost)
        of_state = np.zeros(self.num_states + 1)
        is_choice = self.chosen >= 0
        for states in reversed(self.states_of_epoch):
            to_come = np.where(
                is_choice[states], self.cost[states] + of_state[self.following[states]], 0.0
            )
            of_choice[states] = to_come
            of_state[states] = (probability[states] * to_come).sum(axis=1)
        return of_choice, of_state

    def epoch_costs(self, of_state: Real) -> Real:
        """Mean cost of an epoch of each episode, 1 for the clairvoyant, (G,).

        ``of_state`` are costs to come of states under a policy, see `values`.
        """
        return of_state[self.starts] / self.num_epochs

    def occupancy(self, probability: Real) -> Real:
        """Chance that an episode comes through a state under a policy, (S,)."""
        chance = np.zeros(self.num_states + 1)
        chance[self.starts] = 1.0
        for states in self.states_of_epoch:
            onward = chance[states, np.newaxis] * probability[states]
            np.add.at(chance, self.following[states], np.where(onward > 0, onward, 0.0))
        return chance[:-1]

    def least(self) -> Real:
        """Least cost to come of any sequence of choices, (S + 1,)."""
        of_state = np.zeros(self.num_states + 1)
        for states in reversed(self.states_of_epoch):
            of_state[states] = (self.cost[states] + of_state[self.following[states]]).min(axis=1)
        return of_state

    def path(self, choices: Whole, episode: int = 0) -> Whole:
        """Plans of an episode by number, epoch by epoch, if each state makes its choice, (S,)."""
        state = int(self.starts[episode])
        plans: list[int] = []
        while state < self.num_states and len(plans) < self.num_epochs[episode]:
            plans.append(int(self.chosen[state, choices[state]]))
            state = int(self.following[state, choices[state]])
        return np.array(plans)


def game_of(
    costs: MoveCosts, start: int | None = None, rule_set: RuleSet = PIPELINE_RULES
) -> MoveGame:
    """List the states of an episode that rules can lead to.

    Parameters
    ----------
    costs
        Costs of plans and changes.
    start
        Plan before the first epoch, by number (default: the static one). As for the rules of
        `agents.replanning.rules.start`, a change from there is decided on at its price and free.
    rule_set
        Rules to choose among.
    """
    first = costs.static if start is None else start
    memory = MoveMemory(costs.base, first, rule_set)
    unit = clairvoyant_work(costs) / costs.num_epochs
    parts: list[MoveGame] = []
    plans: Whole = np.array([first], dtype=np.int64)
    num_states = 0
    for epoch in range(costs.num_epochs):
        memory.see(costs.run[epoch], _rows_of(costs, epoch))
        view = memory.view(plans)
        part = _part(view, costs.run[epoch], epoch, plans, unit)
        num_states += len(plans)
        plans = np.unique(part.chosen[part.chosen >= 0])
        onward = num_states + np.searchsorted(plans, part.chosen)
        parts.append(replace(part, following=np.where(part.chosen >= 0, onward, num_states)))
    parts[-1] = replace(parts[-1], following=np.full_like(parts[-1].following, num_states))
    return _joined(parts, starts=np.array([0]), num_epochs=np.array([len(parts)]), unit=[unit])


def join_games(games: Sequence[MoveGame]) -> MoveGame:
    """Put games side by side."""
    if not games:
        raise ValueError("joined games: games must be one or more, got none")
    sizes = [game.num_states for game in games]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    parts = [
        replace(
            game,
            following=np.where(
                game.following < game.num_states, game.following + offset, offsets[-1]
            ),
        )
        for game, offset in zip(games, offsets, strict=False)
    ]
    return _joined(
        parts,
        starts=np.concatenate([one.starts + at for one, at in zip(games, offsets, strict=False)]),
        num_epochs=np.concatenate([game.num_epochs for game in games]),
        unit=np.concatenate([game.unit for game in games]),
    )


def clairvoyant_work(costs: MoveCosts) -> float:
    """Most work of an episode for one who knows all of it; the first plan is free."""
    to_come = np.zeros(costs.num_plans)
    for epoch in reversed(range(1, costs.num_epochs)):
        to_come = (work_left(costs.move[epoch], costs.run[epoch]) + to_come).min(axis=1)
    return -float((work_left(0.0, costs.run[0]) + to_come).min())


def _rows_of(costs: MoveCosts, epoch: int) -> Rows:
    move, levels = costs.move[epoch], costs.levels
    return lambda plans: (move[plans], levels[plans])


def _part(view: MoveView, run: Real, epoch: int, plans: Whole, unit: float) -> MoveGame:
    """States of one epoch, which lead nowhere yet."""
    num_states = len(plans)
    choice_of_rule, chosen = _choices(view.targets)
    price = np.take_along_axis(view.price, np.maximum(chosen, 0), axis=1) if epoch > 0 else 0.0
    return MoveGame(
        observation=view.observation,
        epoch=np.full(num_states, epoch),
        plan=plans,
        choice_of_rule=choice_of_rule,
        chosen=chosen,
        cost=np.where(
            chosen >= 0, 2.0 + work_left(price, run[np.maximum(chosen, 0)]) / unit, np.inf
        ),
        following=np.zeros_like(chosen),
        starts=np.array([0]),
        num_epochs=np.array([1]),
        unit=np.array([unit]),
    )


def _choices(targets: Whole) -> tuple[npt.NDArray[np.uint8], Whole]:
    """Number of each rule's plan among those of its row, (P, R), and these in order, (P, U).

    Rows of fewer plans end with -1.
    """
    order = np.argsort(targets, axis=1, kind="stable")
    ranked = np.take_along_axis(targets, order, axis=1)
    number = np.zeros_like(ranked)
    number[:, 1:] = np.cumsum(ranked[:, 1:] != ranked[:, :-1], axis=1)
    choice_of_rule = np.empty(targets.shape, dtype=np.uint8)
    np.put_along_axis(choice_of_rule, order, number.astype(np.uint8), axis=1)
    chosen = np.full((len(targets), int(number.max()) + 1), -1, dtype=np.int64)
    np.put_along_axis(chosen, number, ranked, axis=1)
    return choice_of_rule, chosen


def _joined(
    parts: Sequence[MoveGame], *, starts: Whole, num_epochs: Whole, unit: npt.ArrayLike
) -> MoveGame:
    """One game of the states of several; their successors are right already, or past all states."""
    width = max(part.chosen.shape[1] for part in parts)
    total = sum(part.num_states for part in parts)
    return MoveGame(
        observation=np.concatenate([part.observation for part in parts]),
        epoch=np.concatenate([part.epoch for part in parts]),
        plan=np.concatenate([part.plan for part in parts]),
        choice_of_rule=np.concatenate([part.choice_of_rule for part in parts]),
        chosen=np.concatenate([_widen(part.chosen, width, -1) for part in parts]),
        cost=np.concatenate([_widen(part.cost, width, np.inf) for part in parts]),
        following=np.concatenate([_widen(part.following, width, total) for part in parts]),
        starts=starts,
        num_epochs=num_epochs,
        unit=np.asarray(unit, dtype=np.float64),
    )


def _widen(table: npt.NDArray[_T], width: int, filling: float) -> npt.NDArray[_T]:
    """A table with more columns, of one value."""
    missing = ((0, 0), (0, width - table.shape[1]))
    return np.pad(table, missing, constant_values=filling)
