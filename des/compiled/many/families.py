"""Plans of all families simulated side by side: pipelines, replicas, and groups of either."""

from collections.abc import Sequence

import numpy as np

from des.compiled.eligibility import has_plain_transport
from des.compiled.many.family_layout import ALONE, PassTimes, RingJob, RingRoom
from des.compiled.many.family_rows import WrittenPlans, write_plans
from des.compiled.many.job import DomainFigures, domain_figures
from des.compiled.many.layout import Real
from des.compiled.many.paced import CountedPlans, paces_of
from des.compiled.many.pipeline_scratch import new_lane_scratch
from des.compiled.many.pipelines import last_passes
from des.compiled.many.rings import step_times
from des.compiled.many.steady import Job
from des.costs.message_times import direct_links
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.world.topology import Topology


class FamilySimulation:
    """Simulates plans of one job, written down once, on one network after another.

    One thread at a time may use it. Plans are those that `write_plans` holds.
    """

    def __init__(
        self, workload: Workload, written: WrittenPlans, corrections: Corrections = NO_CORRECTIONS
    ) -> None:
        self._workload, self._written, self._corrections = workload, written, corrections
        rows = written.rows
        stages, schedule = rows.pipelines.num_stages, rows.pipelines.schedule
        self._paces = paces_of(written.schedules)
        self._scratch = new_lane_scratch(int(stages.max()), int(rows.shares.max()))
        self._passes = PassTimes(*np.zeros((2, *rows.pipelines.domain.shape)))
        order = np.lexsort((rows.shares, stages, schedule))
        message = np.repeat(rows.message, np.diff(rows.first))[order]
        self._orders = [order[message == each] for each in range(len(written.compressions))]
        sums = workload.sums_before
        self._sums = (
            np.array(workload.num_parameters),
            np.array(sums.num_parameters),
            np.array(sums.backward_flops),
        )

    def times_on(self, topology: Topology) -> Real:
        """Times of the plans, (N,), `nan` where one needs a link that there is not. [s]

        The topology stands still, and has plain transport.
        """
        return self.times_with(*self._jobs(topology))

    def times_with(self, job: Job, ring: RingJob) -> Real:
        """Times of the plans, (N,), as `times_on`, where figures of the links are at hand. [s]"""
        has_passes = bool((self._written.kinds.start != ALONE).any())
        for number, ordered in enumerate(self._orders if has_passes else ()):
            self._run_pipelines(job, ring, ordered, self._written.compressions[number])
        times_s = np.empty(len(self._written.positions))
        written = self._written
        room = _room(written, self._workload.num_layers, len(job.rate_flops_per_s))
        step_times(written.rows, written.kinds, written.scripts, ring, self._passes, room, times_s)
        times_s[~np.isfinite(times_s)] = np.nan
        return times_s

    def _jobs(self, topology: Topology) -> tuple[Job, RingJob]:
        figures = domain_figures(self._workload, topology.domains, self._corrections)
        return self.jobs_of(figures, *direct_links(topology, self._corrections))

    def jobs_of(
        self, figures: DomainFigures, goodput: Real, latency_s: Real
    ) -> tuple[Job, RingJob]:
        """Put the figures of domains and of direct links, (K, K) each, together."""
        nothing = np.zeros_like(latency_s)
        job = Job(
            num_microbatches=self._workload.num_microbatches,
            sums_before=figures.sums_before,
            work_before=figures.work_before,
            rate_flops_per_s=figures.rate_flops_per_s,
            wire_s=nothing,
            latency_s=latency_s,
            turn_s=nothing,
            overhead_s=float(self._corrections.message_overhead_s),
            capacity_bytes=figures.capacity_bytes,
            bytes_per_parameter=0.0,
            update_s=figures.update_s,
        )
        parameters, parameters_before, backward_before = self._sums
        ring = RingJob(
            num_parameters=parameters,
            parameters_before=parameters_before,
            backward_before=backward_before,
            gradient_bytes=float(self._workload.gradient_bytes),
            goodput_bytes_per_s=goodput,
            latency_s=latency_s,
            overhead_s=job.overhead_s,
            update_s=job.update_s,
        )
        return job, ring

    def _run_pipelines(
        self, job: Job, ring: RingJob, ordered: np.ndarray, compression: float
    ) -> None:
        """Simulate pipelines whose messages shrink by one factor, those alike in a row."""
        goodput = ring.goodput_bytes_per_s
        wire_s = np.full_like(goodput, np.inf)
        num_bytes = self._workload.message_bytes / compression
        np.divide(num_bytes, goodput, out=wire_s, where=goodput > 0.0)
        rows, task = self._written.rows, job._replace(wire_s=wire_s)
        batch = CountedPlans(task, self._paces, rows.pipelines, rows.shares)
        last_passes(self._scratch, batch, ordered, self._passes)


def family_times_s(
    topologies: Sequence[Topology],
    workload: Workload,
    plans: Sequence[Plan],
    corrections: Corrections,
    steps: Sequence[int],
    *,
    is_behind: bool = False,
) -> Real:
    """Times of a step of every plan on every network, (T, P); `nan` where rows cannot hold it. [s]

    Parameters
    ----------
    steps, is_behind
        See `write_plans`; the times are those of the exchanges alone where they are behind.
    """
    times_s: Real = np.full((len(topologies), len(plans)), np.nan)
    if corrections.transport is not None:  # delays depend on the size of each message
        return times_s
    plain = [
        number
        for number, topology in enumerate(topologies)
        if topology.movement is None and has_plain_transport(topology)
    ]
    if not plain:
        return times_s
    size = topologies[0].num_domains
    written = write_plans(workload, size, plans, steps, is_behind=is_behind)
    if written is None:
        return times_s
    simulation = FamilySimulation(workload, written, corrections)
    for number in plain:
        times_s[number, written.positions] = simulation.times_on(topologies[number])
    return times_s


def _room(written: WrittenPlans, num_layers: int, num_domains: int) -> RingRoom:
    """Make room for the exchanges of any plan: a bucket a layer at most."""
    replicas = int(np.diff(written.rows.first).max())
    messages = num_layers * int(written.scripts.num_messages.max())
    members = num_layers * replicas
    free_s, last_s = np.zeros((2, num_domains, num_domains))
    stage_of, first_layer = np.zeros(replicas, np.int64), np.zeros(num_layers, np.int64)
    stages, steps, awaited, ranks = np.zeros((4, members), dtype=np.int64)
    ready_s, events_s = np.zeros((2, members))
    return RingRoom(
        stage_of=stage_of,
        first_layer=first_layer,
        parameters=np.zeros(num_layers),
        part_bytes=np.zeros(num_layers),
        member_stage=stages,
        step=steps,
        awaited=awaited,
        ready_s=ready_s,
        arrival_s=np.empty(max(1, messages)),
        free_s=free_s,
        last_arrival_s=last_s,
        partials=np.zeros(num_layers + 1),
        event_s=events_s,
        event_rank=ranks,
    )
