"""Times of changes between plans of several copies of the model, on links that stand still.

A domain that holds a layer, for whichever copy, needs not be sent it again; of several holders a
layer comes from the one from which it is there first, see `des.engine.migration`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from des import Plan, Workload
from des.base.jit import kernel
from des.compiled.many.layout import Flags, Real, Small, Whole
from des.costs.outer_state import INNER_MOMENTS_BYTES, OUTER_STATE_BYTES, has_outer_state


class Copies(NamedTuple):
    """Domains of the layers of N plans.

    ``domains`` (N, R, L) has those of each copy, -1 behind the last one; ``holds`` (N, L, K) says
    which domains hold a layer, ``is_again`` (N, R, L) which entries an earlier copy has too, and
    ``has_outer`` (N,) whether there is an outer optimiser.
    """

    domains: Small
    holds: Flags
    is_again: Flags
    has_outer: Flags


def _copies_of(plans: Sequence[Plan], num_domains: int) -> Copies:
    """Write down the placements of plans."""
    most = max(len(plan.placements) for plan in plans)
    num_layers = len(plans[0].placement.domain_of_layer)
    domains = np.full((len(plans), most, num_layers), -1, dtype=np.int32)
    for row, plan in enumerate(plans):
        for copy, placement in enumerate(plan.placements):
            domains[row, copy] = placement.domain_of_layer
    holds = np.zeros((len(plans), num_layers, num_domains), dtype=np.bool_)
    is_again = np.zeros(domains.shape, dtype=np.bool_)
    rows, layers = np.ogrid[: len(plans), :num_layers]
    for copy in range(most):
        is_there, here = domains[:, copy] >= 0, np.maximum(domains[:, copy], 0)
        is_again[:, copy] = is_there & holds[rows, layers, here]
        holds[rows, layers, here] |= is_there
    has_outer = np.array([has_outer_state(plan) for plan in plans], dtype=np.bool_)
    return Copies(domains=domains, holds=holds, is_again=is_again, has_outer=has_outer)


class MoveRates(NamedTuple):
    """Goodput [bytes/s] and latency [s] of links, (K, K) each, and the overhead of a message. [s]

    A goodput of 0 is no link.
    """

    goodput: Real
    latency_s: Real
    overhead_s: float


class CopyChanges:
    """All changes of S plans of a job into C others, whatever their copies of the model.

    Plans that differ neither in placements nor in an outer optimiser are looked at once.

    Attributes
    ----------
    moved_bytes
        Model state that is sent, (S, C).
    """

    def __init__(
        self, workload: Workload, sources: Sequence[Plan], plans: Sequence[Plan], num_domains: int
    ) -> None:
        self._parameters = np.array(workload.num_parameters, dtype=np.float64)
        self._state_bytes = float(workload.state_bytes)
        (self._old, old_rows), (self._new, new_rows) = (
            _distinct_copies(given, num_domains) for given in (sources, plans)
        )
        self._rows = np.ix_(old_rows, new_rows)
        anywhere, nothing = np.ones((num_domains, num_domains)), np.zeros((num_domains,) * 2)
        self.moved_bytes: Real = self._filled(MoveRates(anywhere, nothing, 0.0))[1]

    def times_s(self, rates: MoveRates) -> Real:
        """Time until the last layer has arrived, (S, C); 0 where none is sent. [s]

        ``inf`` where a layer could come over a link that there is not.
        """
        return self._filled(rates)[0]

    def _filled(self, rates: MoveRates) -> tuple[Real, Real]:
        found = np.empty((2, len(self._old.has_outer), len(self._new.has_outer)))
        _fill(self._old, self._new, self._parameters, self._state_bytes, rates, *found)
        return found[0][self._rows], found[1][self._rows]


def _distinct_copies(plans: Sequence[Plan], num_domains: int) -> tuple[Copies, Whole]:
    """Write down the placements of plans, each once, and the row that each plan has."""
    numbers: dict[tuple[object, ...], int] = {}
    keys = [(plan.placements, has_outer_state(plan)) for plan in plans]
    rows = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    _, first = np.unique(rows, return_index=True)
    return _copies_of([plans[at] for at in first.tolist()], num_domains), rows


@kernel
def _fill(
    old: Copies,
    new: Copies,
    parameters: Real,
    state_bytes: float,
    rates: MoveRates,
    times_s: Real,
    moved_bytes: Real,
) -> None:
    """Write the time and the bytes of each change."""
    free_s = np.empty(rates.latency_s.shape)
    for source in range(times_s.shape[0]):
        for target in range(times_s.shape[1]):
            free_s[:] = 0.0
            times_s[source, target], moved_bytes[source, target] = _change(
                old, source, new, target, parameters, state_bytes, rates, free_s
            )


@kernel
def _change(
    old: Copies,
    source: int,
    new: Copies,
    target: int,
    parameters: Real,
    state_bytes: float,
    rates: MoveRates,
    free_s: Real,
) -> tuple[float, float]:
    """Time until the last layer has arrived [s], and bytes; ``free_s`` (K, K) is 0 at first."""
    num_copies, num_layers = new.domains.shape[1:]
    is_several = num_copies > 1 and new.domains[target, 1, 0] >= 0
    are_to_agree = old.has_outer[source] and is_several and not new.has_outer[target]
    if old.has_outer[source] and new.has_outer[target]:
        state_bytes += OUTER_STATE_BYTES
    last_s = moved = 0.0
    for copy in range(num_copies):
        for layer in range(num_layers):
            to = new.domains[target, copy, layer]
            if to < 0 or new.is_again[target, copy, layer]:
                continue
            is_held, only = old.holds[source, layer, to], -1
            if are_to_agree:
                only = _first_to_stay(old, source, new, target, layer)
            if to == only or (is_held and not are_to_agree):
                continue
            num_bytes = parameters[layer] * (INNER_MOMENTS_BYTES if is_held else state_bytes)
            arrival_s = _sent(old.domains[source, :, layer], only, to, num_bytes, rates, free_s)
            last_s = max(last_s, arrival_s)
            moved += num_bytes
    return last_s, moved


@kernel
def _first_to_stay(old: Copies, source: int, new: Copies, target: int, layer: int) -> int:
    """First holder of a layer that keeps it, or the first one where none does."""
    for copy in range(old.domains.shape[1]):
        holder = old.domains[source, copy, layer]
        if holder >= 0 and new.holds[target, layer, holder]:
            return int(holder)
    return int(old.domains[source, 0, layer])


@kernel
def _sent(
    holders: Small, only: int, to: int, num_bytes: float, rates: MoveRates, free_s: Real
) -> float:
    """Arrival of a layer from the holder from which it is there first, or from the only one. [s]

    That is ``inf`` where a holder has no link; ``free_s`` says from when on links are idle.
    """
    best_s, chosen, turn_s = np.inf, -1, 0.0
    for place in range(holders.size):
        holder = holders[place]
        if holder < 0 or (only >= 0 and holder != only):
            continue
        if not rates.goodput[holder, to] > 0.0:
            return np.inf
        alone_s = rates.overhead_s + num_bytes / rates.goodput[holder, to]
        arrival_s = free_s[holder, to] + alone_s + rates.latency_s[holder, to]
        if arrival_s < best_s:
            best_s, chosen, turn_s = arrival_s, holder, alone_s
    free_s[chosen, to] += turn_s
    return best_s
