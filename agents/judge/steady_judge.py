"""How good plans are on many networks of one job, with what does not change made ready once."""

import math
import sys
from collections.abc import Sequence

import numpy as np

from agents.decision.depths import DEPTHS
from agents.judge.rows import rows_of
from agents.judge.search_judge import MISFIT, Judge, has_steady_plans, programs_of
from des import NO_CORRECTIONS, Corrections, Placement, Plan, Topology, Workload, simulate
from des.compiled.kernels.lanes import LaneRules
from des.compiled.kernels.program import STEADY
from des.compiled.lanes import new_lanes, no_record
from des.compiled.many.layer_sums import sums_table
from des.compiled.many.layout import Real
from des.compiled.many.steady import FITS, Job, Plans, makespans, overflows, water_fill
from des.costs.memory import model_state_bytes
from des.costs.stage_times import compute_rate_flops_per_s
from des.schedules import is_static

_RULES = LaneRules(
    weather=STEADY,
    window_bytes=math.inf,  # a window is in the wires' times already
    interval_s=math.inf,
    bandwidth_fluctuation=0.0,
    latency_jitter=0.0,
)


class RelayedJob(Job):
    """A job on a network whose plans may need relays, or on which they wait for each other.

    What `Job` says, and who judges plans there: some one by one, which takes milliseconds each.
    """

    judge: Judge

    def scores(self, plans: Plans) -> Real:
        """Judge plans; those of which a border has no way there and back get ``inf``."""
        here, there = plans.domain[:, :-1], plans.domain[:, 1:]
        is_border = np.arange(1, plans.domain.shape[1]) < plans.num_stages[:, np.newaxis]
        rows = np.flatnonzero((self.judge.can_reach[here, there] | ~is_border).all(axis=1))
        scores: Real = np.full(len(plans.num_stages), np.inf)
        scores[rows] = self.judge.scores(rows_of(plans, rows))
        return scores


class SteadyJudge:
    """Judges plans of one job on any network of a number of domains that stands still.

    Times are those of `des.simulate`, and scores those of `agents.judge.search_judge.Judge`, to
    the last bit. That one is made for one network; this one for one after another: what plans do
    is worked out once, and a network costs about 0.1 ms. One thread at a time may ask a judge.

    Attributes
    ----------
    most_stages
        Of a plan: as many as there are domains, or layers.
    """

    def __init__(
        self,
        workload: Workload,
        num_domains: int,
        *,
        schedules: Sequence[str] = DEPTHS,
        corrections: Corrections = NO_CORRECTIONS,
    ) -> None:
        self.workload, self.num_domains, self.corrections = workload, num_domains, corrections
        self.schedules = _checked(schedules)
        self.most_stages = min(num_domains, workload.num_layers)
        self._position = {name: index for index, name in enumerate(self.schedules)}
        self._sums_before = sums_table(workload)
        self._programs, num_slots = programs_of(self.schedules, self.most_stages, workload)
        self._lanes, self._record = new_lanes(self.most_stages, num_slots), no_record()
        self._num_groups = len(self.schedules) * self.most_stages
        self._bytes_per_parameter = model_state_bytes(1.0, None)
        self._apart = ~np.eye(num_domains, dtype=np.bool_)

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
        is_joined = len(topology.links) == self.num_domains * (self.num_domains - 1)
        if not is_joined or not has_steady_plans(topology, self.workload, simulate):
            return self._relayed(topology)
        corrections, domains = self.corrections, topology.domains
        goodput, latency_s, num_bytes = *self.wires(topology), self.workload.message_bytes
        wire_s, turn_s = np.zeros((2, self.num_domains, self.num_domains))
        wire_s[self._apart] = num_bytes / goodput[self._apart]
        turn_s[self._apart] = corrections.message_overhead_s + wire_s[self._apart]
        return Job(
            num_microbatches=self.workload.num_microbatches,
            sums_before=self._sums_before,
            rate_flops_per_s=np.array(
                [compute_rate_flops_per_s(domain, corrections) for domain in domains]
            ),
            wire_s=wire_s,
            latency_s=latency_s,
            turn_s=turn_s,
            overhead_s=float(corrections.message_overhead_s),
            capacity_bytes=np.array([float(domain.memory_bytes) for domain in domains]),
            bytes_per_parameter=self._bytes_per_parameter,
        )

    def wires(self, topology: Topology) -> tuple[Real, Real]:
        """Goodputs [bytes/s] and latencies [s] from row to column where all pairs have a link."""
        shape = (self.num_domains, self.num_domains)
        bandwidth, latency_s = np.zeros((2, *shape))
        links = topology.links  # in order of source and target, as the entries of a matrix are
        bandwidth[self._apart] = [link.bandwidth_bytes_per_s for link in links]
        latency_s[self._apart] = [link.latency_s for link in links]
        bandwidth *= self.corrections.wan_bandwidth_factor
        window_bytes = topology.transport.message_window_bytes
        if window_bytes is not None:
            round_trip_s = (latency_s + latency_s.T) * self.corrections.wan_latency_factor
            is_bound = window_bytes < bandwidth * round_trip_s
            bandwidth[is_bound] = window_bytes / round_trip_s[is_bound]
        return bandwidth, latency_s * self.corrections.wan_latency_factor

    def scores(self, job: Job, plans: Plans) -> Real:
        """Return the iteration times of plans, shaped (N,), the less the better. [s]

        Those that do not fit get `MISFIT` times the memory that they need over what there is, those
        with a border that no links lead over ``inf``.
        """
        if isinstance(job, RelayedJob):
            return job.scores(plans)
        overflow = np.empty(len(plans.num_stages))
        overflows(job, self._programs, plans, overflow)
        scores = np.where(overflow == FITS, np.inf, MISFIT * (1.0 + overflow))
        rows = np.flatnonzero(overflow == FITS)
        groups = plans.schedule[rows] * self.most_stages + plans.num_stages[rows] - 1
        starts = np.cumsum(np.bincount(groups + 1, minlength=self._num_groups + 1))
        ordered = rows[np.argsort(groups, kind="stable")]
        failed = makespans(
            self._lanes,
            _RULES,
            self._record,
            job,
            self._programs,
            plans,
            ordered,
            starts,
            scores,
        )
        assert failed < 0, "links that stand still let every message through"
        return scores

    def fill(self, job: Job, plans: Plans) -> Real:
        """Split the layers of plans, see `des.compiled.many.steady.water_fill`; returns levels.
        [s]
        """
        if isinstance(job, RelayedJob):
            return job.judge.fill(plans)
        levels_s = np.empty(len(plans.num_stages))
        water_fill(job, self._programs, plans, levels_s)
        return levels_s

    def plan(self, plans: Plans, row: int) -> Plan:
        """One of the plans."""
        num_stages = int(plans.num_stages[row])
        ends = plans.end_layer[row, :num_stages]
        return Plan(
            placement=Placement.contiguous(
                plans.domain[row, :num_stages].tolist(), np.diff(ends, prepend=0).tolist()
            ),
            schedule=self.schedules[plans.schedule[row]],
        )

    def can_hold(self, plan: Plan) -> bool:
        """Whether `plans_of` can take a plan: a stage a domain, a known schedule, nothing else."""
        stages = plan.placement.stages
        return (
            plan.schedule in self._position
            and plan == Plan(placement=plan.placement, schedule=plan.schedule)
            and len({stage.domain for stage in stages}) == len(stages)
            and len(plan.placement.domain_of_layer) == self.workload.num_layers
            and max(stage.domain for stage in stages) < self.num_domains
        )

    def plans_of(self, plans: Sequence[Plan]) -> Plans:
        """Write down plans for `scores`.

        Raises
        ------
        ValueError
            If a plan cannot be written down, see `can_hold`.
        """
        for plan in plans:
            if not self.can_hold(plan):
                raise ValueError(
                    f"steady judge: plans must have one stage a domain of {self.num_domains}, "
                    f"{self.workload.num_layers} layers, a schedule of "
                    f"{', '.join(self.schedules)} and the defaults for all else; got {plan!r}"
                )
        domain, end_layer = np.zeros((2, len(plans), self.most_stages), dtype=np.int32)
        for row, plan in enumerate(plans):
            for stage in plan.placement.stages:
                domain[row, stage.index] = stage.domain
                end_layer[row, stage.index] = stage.first_layer + stage.num_layers
        return Plans(
            num_stages=np.array([len(one.placement.stages) for one in plans], dtype=np.int32),
            schedule=np.array([self._position[one.schedule] for one in plans], dtype=np.int32),
            domain=domain,
            end_layer=end_layer,
        )

    def _relayed(self, topology: Topology) -> RelayedJob:
        judge = Judge(
            topology,
            self.workload,
            self.corrections,
            schedules=self.schedules,
            simulator=simulate,
            max_judged=sys.maxsize,
        )
        job = RelayedJob(*judge.job)
        job.judge = judge
        return job


def _checked(schedules: Sequence[str]) -> tuple[str, ...]:
    names = tuple(schedules)
    if not names or len(set(names)) < len(names) or not all(is_static(name) for name in names):
        raise ValueError(
            "steady judge: schedules must be one or more static ones, such as "
            f"{', '.join(DEPTHS)}, each once; got {names!r}"
        )
    return names
