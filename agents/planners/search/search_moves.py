"""Candidates of the search and what is next to them: other orders, other splits."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import permutations

import numpy as np

from des.compiled.many.layout import Small
from des.compiled.many.steady import Plans

STEPS = (1, 2, 4, 8)
"""Numbers of layers that move from one stage to another at once."""

Order = tuple[int, ...]
"""Domains from the input on, each at most once."""


def all_orders(num_domains: int, most_stages: int) -> Iterator[Order]:
    """All ordered subsets of domains, the smallest first."""
    for size in range(1, most_stages + 1):
        yield from permutations(range(num_domains), size)


def plans_of_orders(orders: Sequence[Order], schedules: Iterable[int], most_stages: int) -> Plans:
    """Plans of some orders under some schedules, order by order; layers are not split yet."""
    names = np.array(list(schedules), dtype=np.int32)
    domain = np.zeros((len(orders), most_stages), dtype=np.int32)
    for row, order in enumerate(orders):
        domain[row, : len(order)] = order
    return Plans(
        num_stages=np.repeat(np.array([len(one) for one in orders], np.int32), len(names)),
        schedule=np.tile(names, len(orders)),
        domain=np.repeat(domain, len(names), axis=0),
        end_layer=np.zeros((len(orders) * len(names), most_stages), dtype=np.int32),
    )


def joined(parts: Sequence[Plans]) -> Plans:
    """Return all plans of several."""
    return Plans(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))


def order_of(plans: Plans, row: int) -> Order:
    """Return the domains of a plan."""
    return tuple(plans.domain[row, : plans.num_stages[row]].tolist())


def resplits(plans: Plans, row: int, num_schedules: int) -> Plans:
    """Plans whose layers lie one move from those of a plan, under all schedules, and it itself.

    A move takes 1, 2, 4 or 8 layers from any stage to any other; those in between keep their
    numbers of layers.
    """
    moves = _moves(int(plans.num_stages[row]), STEPS)
    return _move(plans, row, moves, np.arange(num_schedules, dtype=np.int32))


def double_resplits(plans: Plans, row: int, num_schedules: int) -> Plans:
    """Plans two moves of up to two layers away from a plan, under all schedules."""
    moves = _double_moves(int(plans.num_stages[row]))
    return _move(plans, row, moves, np.arange(num_schedules, dtype=np.int32))


def _move(plans: Plans, row: int, moves: Small, schedules: Small) -> Plans:
    """Make all moves that leave every stage a layer, under all of some schedules."""
    num_stages = int(plans.num_stages[row])
    before = plans.end_layer[row, :num_stages]
    own = before.copy()
    own[1:] -= before[:-1]
    counts = own + moves
    counts = counts[counts.min(axis=1) >= 1]
    ends = np.zeros((len(counts), plans.domain.shape[1]), dtype=np.int32)
    counts.cumsum(axis=1, out=ends[:, :num_stages])
    total = len(counts) * len(schedules)
    return Plans(
        num_stages=np.full(total, num_stages, dtype=np.int32),
        schedule=schedules[np.newaxis].repeat(len(counts), axis=0).ravel(),
        domain=plans.domain[row : row + 1].repeat(total, axis=0),
        end_layer=ends.repeat(len(schedules), axis=0),
    )


@lru_cache(maxsize=64)
def _moves(num_stages: int, steps: tuple[int, ...]) -> Small:
    """Changes of numbers of layers, shaped (moves, stages); the first one changes nothing."""
    moves = [np.zeros(num_stages, dtype=np.int32)]
    for step in steps:
        for giver, taker in permutations(range(num_stages), 2):
            move = np.zeros(num_stages, dtype=np.int32)
            move[giver], move[taker] = -step, step
            moves.append(move)
    return np.array(moves)


@lru_cache(maxsize=16)
def _double_moves(num_stages: int) -> Small:
    """Sums of any two moves of up to two layers, each once."""
    moves = _moves(num_stages, STEPS[:2])
    return np.unique((moves[:, np.newaxis] + moves).reshape(-1, num_stages), axis=0)


def neighbours(order: Order, num_domains: int, most_stages: int) -> list[Order]:
    """Orders one change away, each once.

    Two domains change places, one moves, a part is turned round, another domain takes the place
    of one, one is left out, or one more comes in.
    """
    size = len(order)
    others = [domain for domain in range(num_domains) if domain not in order]
    found: dict[Order, None] = {}
    for one in range(size):
        rest = order[:one] + order[one + 1 :]
        if rest:
            found[rest] = None
        for place in range(size):
            found[(*rest[:place], order[one], *rest[place:])] = None
        for other in others:
            found[(*order[:one], other, *order[one + 1 :])] = None
        for end in range(one + 2, size + 1):
            found[order[:one] + order[one:end][::-1] + order[end:]] = None
            swapped = list(order)
            swapped[one], swapped[end - 1] = swapped[end - 1], swapped[one]
            found[tuple(swapped)] = None
    if size < most_stages:
        for place in range(size + 1):
            for other in others:
                found[(*order[:place], other, *order[place:])] = None
    found.pop(order, None)
    return list(found)
