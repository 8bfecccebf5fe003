"""Times and bytes of changes between plans of any number of copies of the model."""

from collections.abc import Sequence

import numpy as np

from agents.judge.change_costs import HeldLayers, MoveRates, change_costs
from des import Plan, Workload
from des.compiled.many.layout import Real, Small, Whole
from des.costs.outer_state import has_outer_state
from des.job.transformer import OPTIMISER_BYTES


def held_layers(plans: Sequence[Plan], layers: Sequence[Small]) -> HeldLayers:
    """Put plans together, each with the layers of its copies, (R, L)."""
    return HeldLayers(
        layers=np.concatenate(layers),
        first=np.cumsum([0, *map(len, layers)]),
        has_outer=np.array([has_outer_state(plan) for plan in plans], dtype=np.bool_),
        shards=np.array([plan.optimiser_shards for plan in plans]),
    )


def costs_of_changes(
    workload: Workload, held: HeldLayers, changes: Whole, rates: MoveRates, network_of: Whole
) -> Real:
    """Time until the last layer has arrived [s], and bytes sent, of N changes, (2, N).

    Both are those of `des.migration_s`, without the restart, and `des.moved_bytes`. The time is 0
    where nothing is sent, and ``inf`` where a layer could come over a link that there is not.

    Parameters
    ----------
    changes
        Plans before and after, (2, N).
    network_of
        Network of each change, (N,).
    """
    size = rates.latency_s.shape[-1]
    costs = np.empty((2, len(network_of)))
    num_parameters = np.array(workload.num_parameters, dtype=np.float64)
    base_bytes, room = float(workload.state_bytes - OPTIMISER_BYTES), np.empty((3, size, size))
    pairs = np.ascontiguousarray(changes)
    change_costs(held, pairs, rates, network_of, num_parameters, base_bytes, room, costs)
    return costs


class CopyChanges:
    """All changes of S plans of a job into C others, whatever their copies of the model.

    Plans that differ neither in placements nor in states of optimisers are looked at once.

    Attributes
    ----------
    moved_bytes
        Model state that is sent, (S, C).
    """

    def __init__(
        self, workload: Workload, sources: Sequence[Plan], plans: Sequence[Plan], num_domains: int
    ) -> None:
        self._workload = workload
        numbers: dict[tuple[object, ...], int] = {}
        kept: list[Plan] = []
        rows = []
        for given in (sources, plans):
            keys = [(one.placements, has_outer_state(one), one.optimiser_shards) for one in given]
            rows.append([numbers.setdefault(key, len(numbers)) for key in keys])
            kept += given
        old, new = (np.array(own, dtype=np.int64) for own in rows)
        _, first = np.unique(np.concatenate([old, new]), return_index=True)
        distinct = [kept[at] for at in first.tolist()]
        self._held = held_layers(
            distinct,
            [
                np.array([one.domain_of_layer for one in plan.placements], dtype=np.int32)
                for plan in distinct
            ],
        )
        (olds, old_rows), (news, new_rows) = (
            np.unique(own, return_inverse=True) for own in (old, new)
        )
        self._rows = np.ix_(old_rows, new_rows)
        self._changes = np.array([np.repeat(olds, len(news)), np.tile(news, len(olds))])
        self._shape = len(olds), len(news)
        anywhere, nothing = np.ones((num_domains, num_domains)), np.zeros((num_domains,) * 2)
        self.moved_bytes: Real = self._fill(MoveRates(anywhere, nothing, 0.0))[1]

    def times_s(self, rates: MoveRates) -> Real:
        """Time until the last layer has arrived, (S, C); 0 where none is sent. [s]

        ``inf`` where a layer could come over a link that there is not; ``rates`` are of one
        network, (K, K).
        """
        return self._fill(rates)[0]

    def _fill(self, rates: MoveRates) -> tuple[Real, Real]:
        one = MoveRates(rates.goodput[np.newaxis], rates.latency_s[np.newaxis], rates.overhead_s)
        network_of = np.zeros(self._changes.shape[1], dtype=np.int64)
        found = costs_of_changes(self._workload, self._held, self._changes, one, network_of)
        times_s, moved_bytes = (each.reshape(self._shape)[self._rows] for each in found)
        return times_s, moved_bytes
