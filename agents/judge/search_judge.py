"""How good candidate plans are: thousands at a time where they can be, else one by one."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations

import numpy as np

from agents.decision.simulator import Simulator
from des import Corrections, Placement, Plan, Topology, UnreachableError, Workload, simulate
from des.compiled.eligibility import is_foreseeable
from des.compiled.foreseeable import rules_of
from des.compiled.lanes import new_lanes, no_record
from des.compiled.many.layer_sums import sums_table
from des.compiled.many.layout import Flags, Moments, Real, Whole
from des.compiled.many.steady import FITS, Job, Plans, Programs, makespans, overflows, water_fill
from des.compiled.operation_table import operation_table
from des.compiled.simulate import simulate_compiled
from des.costs.memory import model_state_bytes
from des.costs.message_times import quickest_message_s
from des.costs.stage_times import compute_rate_flops_per_s
from des.engine.conditions import Conditions, Offer
from des.schedules import most_held, peaks_held, stage_orders

MOST_JUDGED, MOST_SIMULATED = 20_000_000, 5_000
"""Default maxima of judged plans, in compiled code and one by one."""

MISFIT = 1e200
"""Score of a plan that lacks no memory worth mentioning, longer than any iteration. [s]"""


class Judge:
    """Judges plans of one job on one world that stands still, and counts them.

    Attributes
    ----------
    can_reach
        Between which domains messages find a way, there and back, shaped (K, K).
    is_quick
        Whether plans are judged in compiled code, unless they need relays.
    num_judged
        Plans that fitted and were judged, the same ones counted again.
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
        self.schedules, self.simulator = tuple(schedules), simulator
        self.most_stages = min(topology.num_domains, workload.num_layers)
        self.job = _job_of(topology, workload, corrections)
        self.can_reach: Flags = np.isfinite(self.job.wire_s) & np.isfinite(self.job.wire_s.T)
        self.programs, num_slots = programs_of(schedules, self.most_stages, workload)
        self._lanes, self._record = new_lanes(self.most_stages, num_slots), no_record()
        self._rules = rules_of(topology)._replace(window_bytes=math.inf)  # in the wires' times
        self.is_quick = has_steady_plans(topology, workload, simulator)
        most = MOST_JUDGED if self.is_quick else MOST_SIMULATED
        self.num_judged, self._max_judged = 0, most if max_judged is None else max_judged
        self._is_direct = _direct_pairs(topology)
        self._known: dict[Plan, float] = {}

    @property
    def num_left(self) -> int:
        """How many more plans may be judged."""
        return self._max_judged - self.num_judged

    def fill(self, plans: Plans) -> Real:
        """Split the layers of plans, see `des.compiled.many.steady.water_fill`; returns levels.
        [s]
        """
        levels_s = np.empty(len(plans.num_stages))
        water_fill(self.job, self.programs, plans, levels_s)
        return levels_s

    def scores(self, plans: Plans) -> Real:
        """Return the iteration times of plans, the less the better. [s]

        Those that do not fit get `MISFIT` times the memory that they need over what there is, and
        those for which there is no budget left ``inf``.
        """
        overflow = np.empty(len(plans.num_stages))
        overflows(self.job, self.programs, plans, overflow)
        scores = np.where(overflow == FITS, np.inf, MISFIT * (1.0 + overflow))
        rows = np.flatnonzero(overflow == FITS)[: self.num_left]
        self.num_judged += len(rows)
        in_lanes = self.are_steady(plans)[rows]
        self._run_lanes(plans, rows[in_lanes], scores)
        for row in rows[~in_lanes].tolist():
            scores[row] = self._simulate(self.plan(plans, row))
        return scores

    def are_steady(self, plans: Plans) -> Flags:
        """Which plans compiled code judges, shaped (N,): a direct link each way on all borders."""
        here, there = plans.domain[:, :-1], plans.domain[:, 1:]
        is_border = np.arange(1, plans.domain.shape[1]) < plans.num_stages[:, np.newaxis]
        is_direct = self._is_direct[here, there] | ~is_border
        steady: Flags = np.all(is_direct, axis=1) & np.bool_(self.is_quick)
        return steady

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

    def _run_lanes(self, plans: Plans, rows: Whole, scores: Real) -> None:
        groups = plans.schedule[rows] * self.most_stages + plans.num_stages[rows] - 1
        starts = np.cumsum(
            np.bincount(groups + 1, minlength=len(self.schedules) * self.most_stages + 1)
        )
        ordered = rows[np.argsort(groups, kind="stable")]
        failed = makespans(
            self._lanes,
            self._rules,
            self._record,
            self.job,
            self.programs,
            plans,
            ordered,
            starts,
            scores,
        )
        assert failed < 0, "links that stand still let every message through"

    def _simulate(self, plan: Plan) -> float:
        makespan_s = self._known.get(plan)
        if makespan_s is None:
            result = self.simulator(self.topology, self.workload, plan, self.corrections)
            makespan_s = self._known[plan] = result.makespan_s
        return makespan_s


def has_steady_plans(topology: Topology, workload: Workload, simulator: Simulator) -> bool:
    """Whether compiled code judges plans with a stage a domain and direct links on all borders.

    So it is where links stand still, serve in turn and each way by itself, senders never wait and
    the simulator is that of `des`.
    """
    stays = _on_one_domain(workload.num_layers)
    return (
        simulator in (simulate, simulate_compiled)
        and topology.movement is None
        and is_foreseeable(topology, workload, stays)  # nothing is sent, so it is the transport
    )


@lru_cache(maxsize=64)
def _on_one_domain(num_layers: int) -> Plan:
    return Plan(placement=Placement(domain_of_layer=(0,) * num_layers))


def _direct_pairs(topology: Topology) -> Flags:
    """Pairs of domains with a direct link there and back, (K, K)."""
    direct = np.zeros((topology.num_domains, topology.num_domains), dtype=np.bool_)
    for ends in topology.link_index:
        direct[ends] = True
    return direct & direct.T


def _job_of(topology: Topology, workload: Workload, corrections: Corrections) -> Job:
    domains = topology.domains
    wire_s, latency_s, turn_s = _borders(topology, workload, corrections)
    return Job(
        num_microbatches=workload.num_microbatches,
        sums_before=sums_table(workload),
        rate_flops_per_s=np.array([compute_rate_flops_per_s(one, corrections) for one in domains]),
        wire_s=wire_s,
        latency_s=latency_s,
        turn_s=turn_s,
        overhead_s=float(corrections.message_overhead_s),
        capacity_bytes=np.array([float(domain.memory_bytes) for domain in domains]),
        bytes_per_parameter=model_state_bytes(1.0, None),
    )


def _borders(
    topology: Topology, workload: Workload, corrections: Corrections
) -> tuple[Real, Real, Real]:
    """Times of messages between all pairs of domains, see `Job`: on the wire, in flight, in turn.

    Over relays the flight is all that is not on the slowest wire. Where nothing leads to, the wire
    takes ``inf``.
    """
    wire_s, latency_s, turn_s = np.zeros((3, topology.num_domains, topology.num_domains))
    for source, target in permutations(range(topology.num_domains), 2):
        ends = source, target
        try:
            least_s, turn_s[ends] = quickest_message_s(
                topology, source, target, workload.message_bytes, corrections
            )
        except UnreachableError:
            wire_s[ends] = math.inf
            continue
        if ends in topology.link_index:
            offer = _offer(topology, corrections, topology.link_index[ends])
            wire_s[ends] = workload.message_bytes / offer.goodput_bytes_per_s
            latency_s[ends] = offer.latency_s
        else:
            wire_s[ends] = max(0.0, turn_s[ends] - corrections.message_overhead_s)
            latency_s[ends] = least_s - corrections.message_overhead_s - wire_s[ends]
    return wire_s, latency_s, turn_s


def _offer(topology: Topology, corrections: Corrections, link: int) -> Offer:
    """What a link offers that stands still."""
    conditions = Conditions(
        link,
        topology.links[link],
        topology.transport,
        corrections,
        None,
        round_trip_s=topology.round_trip_s(link),
    )
    return conditions.at(0.0)


def programs_of(
    schedules: Sequence[str], most_stages: int, workload: Workload
) -> tuple[Programs, int]:
    """What plans do by schedule and number of stages, and how many arrivals that takes."""
    rows, num_rows, num_slots = [], [0], 1
    first, starts, held = [], [0], []
    windows: list[int] = []
    for name in schedules:
        for num_stages in range(1, most_stages + 1):
            table = operation_table(name, num_stages, workload.num_microbatches)
            rows.append(table.rows)
            num_rows.append(len(table.rows))
            num_slots = max(num_slots, table.num_slots)
            orders = stage_orders(name, num_stages, workload.num_microbatches)
            windows += most_held(orders, num_stages)
            first.append(len(starts) - 1)
            for moments in peaks_held(orders):
                held += [moment for (moment,) in moments]
                starts.append(len(held))
    programs = Programs(
        most_stages=most_stages,
        rows=np.concatenate(rows),
        first_row=np.cumsum(num_rows),
        moments=Moments(
            first=np.array(first),
            start=np.array(starts),
            num_whole=np.array([one.num_whole for one in held]),
            num_halved=np.array([one.num_halved for one in held]),
        ),
        window=np.array(windows),
    )
    return programs, num_slots
