"""Predictions of `des` for a case, in the terms in which ASTRA-sim measures it."""

from collections import defaultdict
from heapq import heapify, heappop, heappush
from typing import cast

from calibration.cases.case import Measurement, PlacementCase, computing_times_s
from calibration.reference.npu_layout import Layout
from des.compiled.simulate import simulate_compiled
from des.costs.inner_sums import half_sum_s, halves_before, left_fraction
from des.engine.result import IterationResult
from des.plan.buckets import buckets_of
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.schedules import Pass


def predict(case: PlacementCase, corrections: Corrections = NO_CORRECTIONS) -> Measurement:
    """Simulate a case with `des`.

    Raises
    ------
    UnreachableError
        If the plan sends between domains that no path joins.
    ValueError
        If the schedule cannot be made for the placement.

    Notes
    -----
    ASTRA-sim counts as exposed whatever of the time until an NPU's last event it does not compute:
    the bubble of the schedule is part of it. An NPU's last event is a pass, a message that it
    sends, receives or passes on, or its part of an exchange of gradients. Messages inside a domain
    are left out: at most the last pass of a device is followed by one.
    """
    result = simulate_compiled(case.topology, case.workload, case.plan, corrections)
    return measurement_of(case, result, corrections)


def measurement_of(
    case: PlacementCase, result: IterationResult, corrections: Corrections = NO_CORRECTIONS
) -> Measurement:
    """Sum up an iteration of a case in the terms of a measurement."""
    return Measurement(
        makespan_s=result.makespan_s,
        communication_bytes=result.communication_cost_bytes,
        exposed_s=_Ends(case, corrections, result).exposed_s(),
    )


class _Ends:
    """Finish times of the NPUs of an iteration, and how long they have computed by then."""

    def __init__(
        self, case: PlacementCase, corrections: Corrections, result: IterationResult
    ) -> None:
        self._case, self._corrections, self._result = case, corrections, result
        self._layout = Layout(case)
        self._buckets = buckets_of(case.workload, case.plan, 0)
        self._end_s: defaultdict[int, float] = defaultdict(float)
        self._computing_s: defaultdict[int, float] = defaultdict(float)
        self._part_arrival_s: defaultdict[tuple[int, int], float] = defaultdict(float)
        """Arrival at a stage of the last message of the ring of a bucket."""

    def exposed_s(self) -> tuple[float, ...]:
        """Exposed communication of each domain, see `Layout.exposed_of_domains`."""
        self._count_passes()
        self._count_messages()
        self._count_sums_inside()
        return self._layout.exposed_of_domains(
            {rank: self._end_s[rank] - self._computing_s[rank] for rank in tuple(self._end_s)}
        )

    def _end(self, rank: int, time_s: float) -> None:
        self._end_s[rank] = max(self._end_s[rank], time_s)

    def _count_passes(self) -> None:
        """Add up the passes of each device, whose NPUs compute together."""
        times_s = computing_times_s(self._case, self._corrections)
        ends_s: defaultdict[tuple[int, ...], float] = defaultdict(float)
        sums_s: defaultdict[tuple[int, ...], float] = defaultdict(float)
        for stage, kind, _, _, end_s in self._result.spans:
            ranks = self._layout.ranks[stage]
            ends_s[ranks] = max(ends_s[ranks], end_s)
            sums_s[ranks] += times_s[stage][cast(Pass, kind)]
        for ranks, end_s in ends_s.items():
            for rank in ranks:
                self._end(rank, end_s)
                self._computing_s[rank] += sums_s[ranks]

    def _count_messages(self) -> None:
        """Let both ends of a link wait for a message, those of a ring for what they receive."""
        last_s: dict[tuple[int, int, str, int], float] = {}
        for link, stage, kind, number, _, _, arrival_s in self._result.transfers:
            key = link, stage, kind, number if kind == "G" else 0
            last_s[key] = max(last_s.get(key, 0.0), arrival_s)
        for (link, stage, kind, number), arrival_s in last_s.items():
            if kind == "G":
                self._count_part(link, stage, number, arrival_s)
                continue
            receiver = stage + 1 if kind == "F" else stage - 1
            for rank in self._ranks_at(link, stage, receiver):
                self._end(rank, arrival_s)

    def _ranks_at(self, link: int, sender: int, receiver: int) -> list[int]:
        """NPUs at both ends of a link that a message crosses on its way."""
        topology = self._case.topology
        ends = [topology.links[link].source, topology.links[link].target]
        domains = {topology.index_of[name] for name in ends}
        paths = self._layout.paths(sender, receiver)
        return [rank for path in paths for rank in path if self._layout.domain_of(rank) in domains]

    def _count_part(self, link: int, sender: int, number: int, arrival_s: float) -> None:
        """Count what the next stage of a ring receives, if this is the last link on the way."""
        stages = self._buckets[number].stages
        receiver = stages[(stages.index(sender) + 1) % len(stages)]
        topology, there = self._case.topology, self._case.stages[receiver].stage
        if topology.index_of[topology.links[link].target] != there.domain:
            return
        self._part_arrival_s[number, receiver] = arrival_s
        for rank in self._layout.ranks[receiver][: self._case.num_endpoint_pairs]:
            self._end(rank, arrival_s)

    def _count_sums_inside(self) -> None:
        """Let each device do its halves of all-reduces in the order in which they get ready."""
        requests_of: defaultdict[int, list[tuple[float, int, int, bool]]] = defaultdict(list)
        for number, bucket in enumerate(self._buckets):
            for stage in bucket.stages:
                own = requests_of[self._case.stages[stage].device]
                is_scattered = halves_before(self._case.stages[stage], bucket) == 0
                if not (is_scattered and bucket.between_domains):
                    own.append((self._made_s(number, stage), number, stage, is_scattered))
                if bucket.between_domains:
                    own.append((self._part_arrival_s[number, stage], number, stage, True))
        for requests in requests_of.values():
            heapify(requests)
            free_s = 0.0
            while requests:
                asked_s, number, stage, is_last = heappop(requests)
                bucket = self._buckets[number]
                half_s = half_sum_s(
                    self._case.workload, self._case.stages[stage], bucket, self._corrections
                )
                free_s = max(asked_s, free_s) + (half_s or 0.0)
                if not is_last and not bucket.between_domains:
                    heappush(requests, (free_s, number, stage, True))
                for rank in self._layout.ranks[stage]:
                    self._end(rank, free_s)

    def _made_s(self, number: int, stage: int) -> float:
        """Time at which a stage has made its part of a bucket."""
        spans = [span for span in self._result.spans if span.kind in "BW"]
        if not self._case.plan.exchange.overlapped:
            stages = self._case.stages
            device = stages[stage].device
            return max(span.end_s for span in spans if stages[span.stage].device == device)
        last = max((span for span in spans if span.stage == stage), key=lambda span: span.end_s)
        bucket = self._buckets[number]
        left = left_fraction(self._case.workload, self._case.stages[stage], bucket)
        return max(last.start_s, last.end_s - left * (last.end_s - last.start_s))
