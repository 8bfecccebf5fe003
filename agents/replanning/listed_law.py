"""Best policy without foresight: a dynamic program on a law whose networks can be listed."""

from dataclasses import dataclass

import numpy as np

from agents.replanning.payoff import undone_by_move
from agents.replanning.rules import least_ahead
from agents.replanning.tables import EpisodeTables
from des.compiled.many.layout import Real, Whole

_AT_ONCE = 64  # networks per array operation: keeps arrays of (N, C, C) small


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListedLaw:
    """Law of an episode by its N networks, each in force for a stretch of epochs, for C plans.

    Attributes
    ----------
    epoch_s
        Length of an epoch. [s]
    iteration_s
        Of each plan on each network, (N, C). [s]
    move_s
        Time of changes, from row to column, (M, C, C). [s]
    moves_of
        Row of `move_s` that holds on each network, (N,).
    state
        State of the law on each network, (N,); the next network depends on it alone.
    chance
        Probability of each network in the next stretch, by the state in the present one, (S, N).
    stretch_epochs
        Epochs of a stretch; the last one of an episode may be shorter.
    """

    epoch_s: float
    iteration_s: Real
    move_s: Real
    moves_of: Whole
    state: Whole
    chance: Real
    stretch_epochs: int = 1

    def __post_init__(self) -> None:
        num_networks, num_plans = self.iteration_s.shape
        if self.move_s.shape[1:] != (num_plans, num_plans) or not (
            self.moves_of.shape == self.state.shape == (num_networks,)
        ):
            raise ValueError(
                f"law: move_s, moves_of and state must be of {num_plans} plans and {num_networks} "
                f"networks, got {self.move_s.shape}, {self.moves_of.shape}, {self.state.shape}"
            )
        sums = self.chance.sum(axis=1)
        if self.chance.shape[1] != num_networks or not np.allclose(sums, 1.0):
            raise ValueError(
                f"law: chance must have {num_networks} columns and rows that sum to 1, got "
                f"{self.chance.shape} and sums from {sums.min():g} to {sums.max():g}"
            )
        if self.stretch_epochs < 1:
            raise ValueError(f"law: stretch_epochs must be at least 1, got {self.stretch_epochs}")

    def expected_undone(self, num_epochs: int) -> Real:
        """Minus the most expected iterations after each stretch, (stretches, S, C).

        By the number of the stretch, its state and the plan in force at its end.

        Notes
        -----
        Backward induction. Within a stretch the network is known, and an epoch is a step of
        ``V(i) = min_j (move(i, j) + epoch(j) + V'(j))``; between stretches the expectation over
        the next network is taken.
        """
        lengths = self.lengths(num_epochs)
        to_come = np.zeros((len(lengths), len(self.chance), self.iteration_s.shape[1]))
        for number in range(len(lengths) - 1, 0, -1):
            ahead = np.empty(self.iteration_s.shape)
            for first in range(0, len(ahead), _AT_ONCE):
                part = slice(first, first + _AT_ONCE)
                moves = undone_by_move(self.move_s[self.moves_of[part]], self.iteration_s[part])
                after = to_come[number][self.state[part]]
                for _ in range(lengths[number]):
                    after = least_ahead(-self.epoch_s / self.iteration_s[part], moves, after)
                ahead[part] = after
            to_come[number - 1] = self.chance @ ahead
        return to_come

    def lengths(self, num_epochs: int) -> list[int]:
        """Epochs of each stretch of an episode."""
        firsts = range(0, num_epochs, self.stretch_epochs)
        return [min(self.stretch_epochs, num_epochs - first) for first in firsts]


def follow_law(tables: EpisodeTables, law: ListedLaw, states: Whole) -> Whole:
    """Walk through an episode by the best policy that knows the law and no epoch to come, (E,).

    The plans are known from the first epoch on, the first one is free to choose. No policy without
    foresight that chooses among these plans is better on the mean over the law; of one episode the
    clairvoyant is never worse.

    Parameters
    ----------
    states
        State of the law in each epoch, (E,).

    Raises
    ------
    ValueError
        If the law is of another number of plans, or states are not of the law and the epochs.
    """
    if law.iteration_s.shape[1] != tables.num_plans:
        raise ValueError(
            f"law: must be of the {tables.num_plans} plans of the episode, got "
            f"{law.iteration_s.shape[1]}"
        )
    num_states = len(law.chance)
    if states.shape != (tables.num_epochs,) or not ((states >= 0) & (states < num_states)).all():
        raise ValueError(
            f"law: states must be {tables.num_epochs} numbers from 0 to {num_states - 1}, got "
            f"{states!r}"
        )
    to_come, path, begin = law.expected_undone(tables.num_epochs), list[int](), 0
    for number, length in enumerate(law.lengths(tables.num_epochs)):
        rows = slice(begin, begin + length)
        after = to_come[number, states[begin]]
        path += _through(tables.undone[rows], tables.undone_by_move[rows], after, path[-1:])
        begin += length
    return np.array(path)


def _through(epochs: Real, moves: Real, after: Real, before: list[int]) -> list[int]:
    """Plans of the epochs of a stretch, from the plan in force before; none: the first is free."""
    ahead = [after]
    for row in range(len(epochs) - 1, 0, -1):
        least = least_ahead(epochs[row : row + 1], moves[row : row + 1], ahead[0])
        ahead.insert(0, least[0])
    path = list(before)
    for row, to_come in enumerate(ahead):
        costs = epochs[row] + to_come
        if path:
            costs = costs + moves[row, path[-1]]
        stays = bool(path) and costs[path[-1]] == costs.min()
        path.append(path[-1] if stays else int(costs.argmin()))
    return path[len(before) :]
