"""The judge of plans on one network, with a budget of plans: what searches spend."""

from collections.abc import Sequence
from functools import lru_cache

from agents.decision.simulator import Simulator
from agents.judge.splits import Walk, new_walk
from agents.judge.steady_judge import SteadyJudge, has_steady_plans, reachable
from des import Corrections, Plan, Topology, Workload
from des.compiled.many.job import direct_pairs
from des.compiled.many.layout import Flags, Real
from des.compiled.many.simulation import are_direct
from des.compiled.many.steady import Plans
from des.schedules import stage_orders

MOST_JUDGED, MOST_SIMULATED = 20_000_000, 5_000
"""Default budgets: plans that are judged in compiled code, and one by one."""


class Judge:
    """A `SteadyJudge` on one network, with a budget.

    Attributes
    ----------
    can_reach
        Between which domains messages find a way, there and back, shaped (K, K).
    is_quick
        Whether plans are judged in compiled code, unless they need relays.
    """

    def __init__(
        self,
        topology: Topology,
        workload: Workload,
        corrections: Corrections,
        *,
        schedules: Sequence[str],
        simulator: Simulator,
        max_judged: int | None,
    ) -> None:
        self.topology, self.workload, self.corrections = topology, workload, corrections
        self._judge = SteadyJudge(
            workload,
            topology.num_domains,
            schedules=schedules,
            corrections=corrections,
            simulator=simulator,
        )
        self.schedules, self.simulator = self._judge.schedules, simulator
        self.most_stages, self.programs = self._judge.most_stages, self._judge.programs
        self.job = self._judge.network_job(topology)
        self.can_reach = reachable(self.job)
        self.is_quick = self._judge.is_paced and has_steady_plans(topology, simulator)
        most = MOST_JUDGED if self.is_quick else MOST_SIMULATED
        self._max_judged = most if max_judged is None else max_judged

    @property
    def num_judged(self) -> int:
        """Plans that fitted and were judged, the same ones counted again."""
        return self._judge.num_judged

    @property
    def num_left(self) -> int:
        """Number of plans that may still be judged."""
        return self._max_judged - self.num_judged

    def fill(self, plans: Plans) -> Real:
        """Split the layers of plans, see `des.compiled.many.steady.water_fill`; returns levels.
        [s]
        """
        return self._judge.fill(self.job, plans)

    def scores(self, plans: Plans) -> Real:
        """Return the iteration times of plans, see `SteadyJudge.scores`. [s]

        Those for which there is no budget left get ``inf``.
        """
        return self._judge.scores(self.job, plans, max(0, self.num_left))

    def are_steady(self, plans: Plans) -> Flags:
        """Mask of plans that compiled code judges, (N,): a direct link each way on all borders."""
        return are_direct(plans, direct_pairs(self.topology)) & self.is_quick

    def plan(self, plans: Plans, row: int) -> Plan:
        """One of the plans."""
        return self._judge.plan(plans, row)

    def plans_of(self, plans: Sequence[Plan]) -> Plans:
        """Write down plans as rows, see `PlanSimulation.plans_of`."""
        return self._judge.plans_of(plans)

    def walk(self, order: Sequence[int], schedule: int) -> Walk:
        """Begin a walk through the splits of an order of domains under a schedule."""
        has_halves = _has_halves(self.schedules[schedule], self.workload.num_microbatches)
        return new_walk(self.job, self.programs, order, schedule, has_halves=has_halves)


@lru_cache(maxsize=1024)
def _has_halves(schedule: str, num_microbatches: int) -> bool:
    """Whether a stage computes gradients of weights in passes of their own."""
    return any(each.kind == "W" for each in stage_orders(schedule, 1, num_microbatches)[0])
