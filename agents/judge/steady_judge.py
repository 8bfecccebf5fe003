"""The judge of plans: how good many plans of one job are on networks that stand still."""

import sys
from collections.abc import Sequence

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.simulator import Simulator
from des import NO_CORRECTIONS, Corrections, Plan, Topology, Workload, simulate
from des.compiled.eligibility import has_plain_transport
from des.compiled.many.job import direct_pairs, has_every_link
from des.compiled.many.layout import Flags, Real
from des.compiled.many.simulation import PlanSimulation, are_direct
from des.compiled.many.steady import FITS, Job, Plans
from des.compiled.simulate import simulate_compiled
from des.schedules import is_static

MISFIT = 1e200
"""Score of a plan that lacks no memory worth mentioning, longer than any iteration. [s]"""


class RelayedJob(Job):
    """A job on a network some of whose plans are simulated one by one, which takes milliseconds.

    They need relays, or wait for each other, or the simulator is another than that of `des`.

    Attributes
    ----------
    direct
        Pairs of domains between which compiled code simulates borders, (K, K).
    known_s
        Iteration times of plans that were simulated one by one. [s]
    """

    topology: Topology
    direct: Flags
    known_s: dict[Plan, float]


class SteadyJudge(PlanSimulation):
    """Judges plans of one job on any network of a number of domains that stands still.

    Times are those of `des.simulate`, to the last bit. It is made once for one network after
    another; one thread at a time may ask it.

    Attributes
    ----------
    num_judged
        Plans that fitted and were judged, the same ones counted again.
    """

    def __init__(
        self,
        workload: Workload,
        num_domains: int,
        *,
        schedules: Sequence[str] = DEPTHS,
        corrections: Corrections = NO_CORRECTIONS,
        simulator: Simulator = simulate,
    ) -> None:
        names = _check(schedules)
        super().__init__(workload, num_domains, schedules=names, corrections=corrections)
        self.simulator, self.num_judged = simulator, 0

    def job_of(self, topology: Topology) -> Job:
        """Say what stages and borders take on a network; a `RelayedJob` where that is not all.

        Raises
        ------
        ValueError
            If the network moves, or has another number of domains.
        """
        if topology.num_domains != self.num_domains or topology.movement is not None:
            raise ValueError(
                f"steady judge: topology must have {self.num_domains} domains and stand still, got "
                f"{topology.num_domains} domains, movement {topology.movement!r}"
            )
        return self.network_job(topology)

    def network_job(self, topology: Topology) -> Job:
        """As `job_of`, also of a network that moves: plans there are simulated one by one."""
        is_quick = self.is_paced and has_steady_plans(topology, self.simulator)
        job = self.times_on(topology)
        if is_quick and has_every_link(topology):
            return job
        relayed = RelayedJob(*job)
        relayed.topology, relayed.known_s = topology, {}
        relayed.direct = direct_pairs(topology) & np.bool_(is_quick)
        return relayed

    def scores(self, job: Job, plans: Plans, most: int = sys.maxsize) -> Real:
        """Return the iteration times of plans, shaped (N,), the less the better. [s]

        Those that do not fit get `MISFIT` times the memory that they need over what there is, those
        with a border that no links lead over ``inf``, and so do those that fit after ``most``.
        """
        overflow = self.overflow(job, plans)
        scores = np.where(overflow == FITS, np.inf, MISFIT * (1.0 + overflow))
        if isinstance(job, RelayedJob):
            is_reached = are_direct(plans, reachable(job))
            scores[~is_reached] = np.inf
            rows = np.flatnonzero((overflow == FITS) & is_reached)[:most]
            one_by_one = rows[~are_direct(plans, job.direct)[rows]]
            for row in one_by_one.tolist():
                scores[row] = self._simulated_s(job, self.plan(plans, row))
            together = np.setdiff1d(rows, one_by_one, assume_unique=True)
        else:
            rows = together = np.flatnonzero(overflow == FITS)[:most]
        self.num_judged += len(rows)
        self.simulate_rows(job, plans, together, scores)
        return scores

    def _simulated_s(self, job: RelayedJob, plan: Plan) -> float:
        makespan_s = job.known_s.get(plan)
        if makespan_s is None:
            result = self.simulator(job.topology, self.workload, plan, self.corrections)
            makespan_s = job.known_s[plan] = result.makespan_s
        return makespan_s


def reachable(job: Job) -> Flags:
    """Between which domains messages find a way, there and back, (K, K)."""
    can_reach: Flags = np.isfinite(job.wire_s) & np.isfinite(job.wire_s.T)
    return can_reach


def has_steady_plans(topology: Topology, simulator: Simulator) -> bool:
    """Whether compiled code judges plans with one stage per domain and direct links on all borders.

    So it is where links stand still, serve in turn and each way by itself, senders never wait and
    the simulator is that of `des`.
    """
    return (
        simulator in (simulate, simulate_compiled)
        and topology.movement is None
        and has_plain_transport(topology)
    )


def _check(schedules: Sequence[str]) -> tuple[str, ...]:
    names = tuple(schedules)
    if not names or len(set(names)) < len(names) or not all(is_static(name) for name in names):
        raise ValueError(
            "steady judge: schedules must be one or more static ones, such as "
            f"{', '.join(DEPTHS)}, each once; got {names!r}"
        )
    return names
