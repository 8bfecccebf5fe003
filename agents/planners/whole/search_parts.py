"""Parts of the search over families: searches for one size of microbatches and one compression."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from agents.decision.whole_plan import ProposeGroups
from agents.judge.paced_judge import Order, PacedJudge
from agents.planners.whole.copies import CopySearch, Mode
from agents.planners.whole.group_orders import GroupOrders
from agents.planners.whole.rings import ExchangeTimes
from agents.planners.whole.sketches import Sketch, best_places
from des import Corrections, Topology, Workload
from des.costs.memory import model_state_bytes
from des.costs.outer_state import OUTER_STATE_BYTES
from des.plan.synchronisation import Synchronisation, agree_every_step


class KeptState(NamedTuple):
    """State of copies: bytes of a parameter beyond the job's; whether they share an optimiser."""

    extra_bytes: float
    sharded: bool

    @classmethod
    def of(cls, mode: Synchronisation) -> "KeptState":
        """State that a mode keeps on the GPUs where every copy has an optimiser of its own."""
        on_gpu = mode.steps_between > 1 and mode.outer_state == "gpu"
        return cls(OUTER_STATE_BYTES if on_gpu else 0.0, False)

    def is_of(self, mode: Synchronisation) -> bool:
        """Whether copies in this mode may have this state."""
        if self.sharded:
            return agree_every_step(mode)
        return self == KeptState.of(mode)


@dataclass(frozen=True)
class SearchPart:
    """The search for plans of one size of microbatches and compression."""

    workload: Workload
    judge: PacedJudge
    proposed: Sequence[Order]
    copies: Mapping[KeptState, CopySearch]

    @property
    def num_judged(self) -> int:
        """Plans judged so far."""
        return self.judge.num_judged + sum(own.num_judged for own in self.copies.values())


def worth_working_out(
    own: Sequence[tuple[Sketch, SearchPart]],
    ends: Sequence[SearchPart],
    most_at_ends: int,
    most_between: int,
) -> Iterator[tuple[Sketch, SearchPart]]:
    """The best sketches of a kind of the sizes at both ends, and a few of all others."""
    for is_end, most in ((True, most_at_ends), (False, most_between)):
        these = [each for each in own if (each[1] in ends) == is_end]
        ring_s = np.array([sketch.step_s for sketch, _ in these])
        star_s = np.array([sketch.star_step_s for sketch, _ in these])
        yield from (these[place] for place in best_places(ring_s, star_s, most))


class PartMaker:
    """Makes the parts of a search on one network.

    Parameters
    ----------
    bandwidth
        Between every two domains, (K, K). [bytes/s]
    """

    def __init__(
        self,
        topology: Topology,
        corrections: Corrections,
        *,
        schedules: Sequence[str],
        bandwidth: np.ndarray,
        modes: Sequence[Mode],
        propose: ProposeGroups | None,
    ) -> None:
        self._topology, self._corrections, self._schedules = topology, corrections, schedules
        self._bandwidth, self._modes, self._propose = bandwidth, modes, propose
        self._exchanges: ExchangeTimes | None = None
        self._suggested: GroupOrders | None = None
        self._rates = [domain.attainable_flops_per_s for domain in topology.domains]

    def part(self, workload: Workload, compression: float) -> SearchPart:
        """Make the searches for one size of microbatches and compression."""
        judge = PacedJudge(
            self._topology,
            workload,
            self._corrections,
            schedules=self._schedules,
            compression=compression,
        )
        if self._exchanges is None:  # no size of microbatches matters to them
            self._exchanges = ExchangeTimes(self._topology, workload, self._corrections)
        if self._suggested is None:  # nor to orders
            self._suggested = GroupOrders(self._bandwidth, self._rates, judge.most_stages)
        proposed = self._propose(self._topology, workload) if self._propose is not None else ()
        several = [groups for groups in proposed if len(groups) > 1]
        copies = {
            state: CopySearch(
                partial(judge.with_state, state.extra_bytes),
                self._exchanges,
                self._suggested,
                proposed=several,
                sharded=state.sharded,
            )
            for state in self._states(workload)
        }
        alone = [groups[0] for groups in proposed if len(groups) == 1]
        return SearchPart(workload, judge, alone, copies)

    def _states(self, workload: Workload) -> list[KeptState]:
        """States of the modes; a shared one where memory or updates of a domain may gain by it."""
        found = sorted({KeptState.of(mode) for _, mode in self._modes})
        num_parameters = workload.sums_before.num_parameters[-1]
        whole_bytes = model_state_bytes(workload, num_parameters, None)
        whole_bytes += sum(workload.activation_bytes)
        gains = any(
            domain.memory_bytes < whole_bytes or domain.kernels is not None
            for domain in self._topology.domains
        )
        sharded = KeptState(0.0, True)
        if gains and any(sharded.is_of(mode) for _, mode in self._modes):
            found.append(sharded)
        return found
