"""Many plans of one job on networks that stand still: written down once, simulated together."""

from collections.abc import Sequence

import numpy as np

from des.compiled.many.families import family_times_s
from des.compiled.many.job import DomainFigures, domain_figures, job_on, work_tables
from des.compiled.many.layout import Flags, Real, Whole
from des.compiled.many.paced import CountedPlans, paced_table, paces_of
from des.compiled.many.pipeline_scratch import new_lane_scratch
from des.compiled.many.programs import programs_of
from des.compiled.many.recurrence import makespans
from des.compiled.many.steady import Job, Plans, overflows, water_fill
from des.compiled.simulate import makespan_compiled_s
from des.costs.layer_times import GpuSpeed, speed_of
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.placement import Placement
from des.plan.plan import Plan
from des.program.lowering import lower
from des.schedules import has_pace
from des.simulation.iteration import exchange_behind_s
from des.world.domain import Domain
from des.world.topology import Topology


class PlanSimulation:
    """Simulates plans of one job that have one stage per domain and a schedule with a pace.

    What plans do is worked out once, so that a network costs about 0.1 ms. One thread at a time may
    use it.

    Attributes
    ----------
    schedules
        By the number that rows of plans have for them.
    most_stages
        Of a plan: as many as there are domains, or layers.
    is_paced
        Whether all schedules have a pace, without which plans are simulated one by one.
    """

    def __init__(
        self,
        workload: Workload,
        num_domains: int,
        *,
        schedules: Sequence[str],
        corrections: Corrections = NO_CORRECTIONS,
    ) -> None:
        self.workload, self.num_domains, self.corrections = workload, num_domains, corrections
        self.schedules = tuple(schedules)
        self.most_stages = min(num_domains, workload.num_layers)
        self.programs = programs_of(self.schedules, self.most_stages, workload)
        self.is_paced = all(map(has_pace, self.schedules))
        self.paces = paces_of(self.schedules if self.is_paced else ())
        self.scratch = new_lane_scratch(self.most_stages, workload.num_microbatches)
        self._position = {name: index for index, name in enumerate(self.schedules)}
        self._tables: dict[tuple[GpuSpeed | None, ...], tuple[Real, Real]] = {}
        self._domains: tuple[Domain, ...] = ()
        self._figures: DomainFigures | None = None

    def times_on(self, topology: Topology) -> Job:
        """Work out what stages and borders take, see `des.compiled.many.job.job_on`."""
        if topology.domains is not self._domains or self._figures is None:  # epochs share theirs
            self._domains = domains = topology.domains
            speeds = tuple(map(speed_of, domains))
            if speeds not in self._tables:
                self._tables[speeds] = work_tables(self.workload, domains)
            self._figures = domain_figures(
                self.workload, domains, self.corrections, tables=self._tables[speeds]
            )
        return job_on(topology, self.workload, self.corrections, figures=self._figures)

    def simulate_rows(self, job: Job, plans: Plans, rows: Whole, times_s: Real) -> None:
        """Write the iteration times of some rows, whose borders have direct links both ways. [s]

        All schedules have a pace.
        """
        groups = plans.schedule[rows] * self.most_stages + plans.num_stages[rows] - 1
        ordered = rows[np.argsort(groups, kind="stable")]
        counts = np.full(len(times_s), self.workload.num_microbatches)
        limits_s = np.full(len(times_s), np.inf)
        batch = CountedPlans(job, self.paces, plans, counts)
        makespans(self.scratch, batch, ordered, len(ordered), limits_s, times_s)

    def overflow(self, job: Job, plans: Plans) -> Real:
        """Memory that plans lack, see `des.compiled.many.steady.overflows`, (N,)."""
        overflow = np.empty(len(plans.num_stages))
        overflows(job, self.programs, plans, overflow)
        return overflow

    def fill(self, job: Job, plans: Plans) -> Real:
        """Split the layers of plans, see `des.compiled.many.steady.water_fill`; returns levels.
        [s]
        """
        levels_s = np.empty(len(plans.num_stages))
        water_fill(job, self.programs, plans, levels_s)
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
        """Whether `plans_of` takes a plan: one stage per domain, a known schedule, nothing else."""
        stages = plan.placement.stages
        return (
            plan.schedule in self._position
            and plan == Plan(placement=plan.placement, schedule=plan.schedule)
            and len({stage.domain for stage in stages}) == len(stages)
            and len(plan.placement.domain_of_layer) == self.workload.num_layers
            and max(stage.domain for stage in stages) < self.num_domains
        )

    def plans_of(self, plans: Sequence[Plan]) -> Plans:
        """Write down plans as rows.

        Raises
        ------
        ValueError
            If a plan cannot be written down, see `can_hold`.
        """
        for plan in plans:
            if not self.can_hold(plan):
                raise ValueError(
                    f"plan simulation: plans must have one stage per domain of {self.num_domains}, "
                    f"{self.workload.num_layers} layers, a schedule of "
                    f"{', '.join(self.schedules)} and all else at its default; got {plan!r}"
                )
        rows = self.new_rows(len(plans))
        for row, plan in enumerate(plans):
            rows.num_stages[row] = len(plan.placement.stages)
            rows.schedule[row] = self._position[plan.schedule]
            for stage in plan.placement.stages:
                rows.domain[row, stage.index] = stage.domain
                rows.end_layer[row, stage.index] = stage.first_layer + stage.num_layers
        return rows

    def new_rows(self, num: int) -> Plans:
        """Make room for plans."""
        return paced_table(num, self.most_stages)


def plan_rows(plans: Plans, rows: Whole | Flags) -> Plans:
    """Return some rows of a table of plans."""
    return Plans(*(field[rows] for field in plans))


def are_direct(plans: Plans, pairs: Flags) -> Flags:
    """Mask of plans that have only borders between some pairs of domains, (N,) of (K, K)."""
    here, there = plans.domain[:, :-1], plans.domain[:, 1:]
    is_border = np.arange(1, plans.domain.shape[1]) < plans.num_stages[:, np.newaxis]
    direct: Flags = np.all(pairs[here, there] | ~is_border, axis=1)
    return direct


def simulate_many(
    topologies: Sequence[Topology],
    workload: Workload,
    plans: Sequence[Plan],
    corrections: Corrections = NO_CORRECTIONS,
    *,
    steps: Sequence[int] = (),
) -> Real:
    """Iteration time of every plan on every network, (T, P), equal to `des.simulate`. [s]

    Plans whose pipelines have one stage per domain, domains of their own that work as one device, a
    schedule with a pace and direct links run side by side in compiled code, their exchanges
    included, where links stand still, serve in turn and each way by itself; the others one by one.
    Memory is not looked at.

    Parameters
    ----------
    steps
        Step of each plan, by which it depends what replicas exchange, see `des.simulate`; none: 0.

    Raises
    ------
    ValueError
        If the networks have different numbers of domains, or a plan does not match one.
    UnreachableError
        If no path of links joins two domains between which a plan sends.

    Examples
    --------
    >>> from des import build_workload, read_topology, simulate
    >>> world, job = read_topology("four_uneven"), build_workload("llama2_7b", num_layers=4)
    >>> even = Plan(placement=Placement.even(4, 4))
    >>> float(simulate_many([world], job, [even])[0, 0]) == simulate(world, job, even).makespan_s
    True
    """
    sizes = {topology.num_domains for topology in topologies}
    if len(sizes) > 1:
        raise ValueError(
            f"simulate many: topologies must have the same number of domains, got {sorted(sizes)}"
        )
    of_plans = list(steps) or [0] * len(plans)
    times_s = family_times_s(topologies, workload, plans, corrections, of_plans)
    for number, column in np.argwhere(np.isnan(times_s)).tolist():
        program = lower(
            topologies[number], workload, plans[column], corrections, step=of_plans[column]
        )
        times_s[number, column] = makespan_compiled_s(topologies[number], program, corrections)
    return times_s


def exchanges_behind_s(
    topology: Topology,
    workload: Workload,
    plans: Sequence[Plan],
    steps: Sequence[int],
    corrections: Corrections = NO_CORRECTIONS,
) -> Real:
    """Times of exchanges that start after a step of each plan and continue during the next, (P,).

    Equal to `des.simulation.iteration.exchange_behind_s`, side by side where `simulate_many`
    is. [s]
    """
    many_s = family_times_s([topology], workload, plans, corrections, steps, is_behind=True)
    times_s: Real = many_s[0]
    for row in np.flatnonzero(np.isnan(times_s)).tolist():
        times_s[row] = exchange_behind_s(topology, workload, plans[row], steps[row], corrections)
    return times_s
