"""Nodes that sum up gradients over the replicas: inside a domain, and between domains."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Literal

from astra_sim.files.execution_trace import CollectiveType
from calibration.cases.case import PlacementCase
from calibration.reference.npu_layout import Layout
from calibration.reference.trace_nodes import Draft, whole_bytes
from des.costs.inner_sums import half_sum_s, halves_before, left_fraction, payload_bytes
from des.plan.buckets import buckets_of
from des.plan.corrections import NO_CORRECTIONS
from des.schedules import Operation

BucketNumber = int

_Inside = tuple[tuple[int, ...], bool]
"""Members of a sum inside a domain, and whether it gathers; others reduce."""


class GradientNodes:
    """The exchanges of an iteration, bucket by bucket, as `des.program.exchange_lists` does them.

    Replicas inside a device reduce and scatter, rings over the domains sum up the parts, and the
    replicas gather. At granularity ``domain``, where the GPUs are no NPUs, what they do among
    themselves is a pause of known length: reductions one after the other, and gathers so, but
    neither waits for the other. All-reduces between domains go straight to the next domain of the
    ring; a route of several hops is up to the network.
    """

    def __init__(self, case: PlacementCase, layout: Layout, draft: Draft) -> None:
        plan, workload = case.plan, case.workload
        self._case, self._layout, self._draft = case, layout, draft
        self._buckets = buckets_of(workload, plan, 0)
        shares = plan.microbatches_of_replicas(workload.num_microbatches)
        self._replica_of = [one.replica for one in case.stages]
        self._passes_left = [shares[replica] for replica in self._replica_of]
        self._stages_left = Counter(self._replica_of)
        self._paused: dict[tuple[int, bool], int] = {}
        self._joined: list[tuple[int, _Inside | None, BucketNumber, int]] = []
        """NPU, whose sum inside a domain (None: between domains), bucket and node of each part."""

    def made_by(self, operation: Operation) -> Mapping[BucketNumber, float]:
        """Buckets of its stage that an operation completes, and after which part of its time.

        Without overlap of exchanges and passes, the buckets of all stages of its replica, at the
        end.
        """
        kind, _, stage = operation
        if not self._buckets or kind not in "BW":
            return {}
        self._passes_left[stage] -= 1
        if self._passes_left[stage]:
            return {}
        replica = self._replica_of[stage]
        self._stages_left[replica] -= 1
        numbered, own = enumerate(self._buckets), self._case.stages[stage]
        if self._case.plan.exchange.overlapped:
            return {
                number: 1.0 - left_fraction(self._case.workload, own, bucket)
                for number, bucket in numbered
                if stage in bucket.stages
            }
        if self._stages_left[replica]:
            return {}
        return {
            number: 1.0
            for number, bucket in numbered
            if any(self._replica_of[each] == replica for each in bucket.stages)
        }

    def exchange(self, number: BucketNumber, stage: int, after: Sequence[Sequence[int]]) -> None:
        """Add the part of a stage in an exchange: ``after`` what, at each of its NPUs."""
        replica = self._replica_of[stage]
        bucket = self._buckets[number]
        holder = next(each for each in bucket.stages if self._replica_of[each] == replica)
        ready = [list(each) for each in after]
        inside = self._pause if self._case.granularity == "domain" else self._collect
        is_scattered = halves_before(self._case.stages[holder], bucket) == 0
        if not bucket.between_domains:
            kind = CollectiveType.ALL_GATHER if is_scattered else CollectiveType.ALL_REDUCE
            inside(number, holder, ready, kind)
            return
        if not is_scattered:
            inside(number, holder, ready, CollectiveType.REDUCE_SCATTER)
        self._ring(number, holder, ready)
        inside(number, holder, ready, CollectiveType.ALL_GATHER)

    def keep_order(self, *, among: Literal["all exchanges", "sums inside"]) -> None:
        """Let every NPU do one exchange after the other.

        Among ``all exchanges`` where an NPU can do one thing at a time, all by number: two in
        different orders would each be in an exchange that waits for the other one. Among ``sums
        inside`` a domain where messages do not see each other, in the order in which gradients are
        made: each would have the whole links between its members to itself, and a device does one
        at a time: reductions one after the other, and gathers so.
        """
        turns: defaultdict[tuple[int, _Inside | None], list[int]] = defaultdict(list)
        if among == "all exchanges":
            for rank, _, _, node in sorted(self._joined, key=itemgetter(2, 3)):
                turns[rank, None].append(node)
        else:
            for rank, inside, _, node in self._joined:
                if inside is not None:
                    turns[rank, inside].append(node)
        for (rank, _), nodes in turns.items():
            for earlier, later in pairwise(nodes):
                self._draft.npus[rank].put_after(later, earlier)

    def _ring(self, number: BucketNumber, holder: int, ready: list[list[int]]) -> None:
        """Sum up between the domains, in as many rings as messages have parts."""
        bucket = self._buckets[number]
        num_members, num_parts = len(bucket.stages), self._case.num_endpoint_pairs
        part_bytes = whole_bytes(bucket.num_bytes / num_parts / num_members)
        for part in range(num_parts):
            members = tuple(self._layout.ranks[stage][part] for stage in bucket.stages)
            self._join(
                f"sum of gradient bucket {number} over the domains",
                CollectiveType.ALL_REDUCE,
                part_bytes * num_members,
                members=members,
                number=number,
                rank=self._layout.ranks[holder][part],
                ready=ready[part],
            )

    def _collect(
        self, number: BucketNumber, holder: int, ready: list[list[int]], kind: CollectiveType
    ) -> None:
        """Let the replicas of a device exchange among each other, those of equal tensor rank."""
        parallelism = self._case.stages[holder].parallelism
        if parallelism is None or parallelism.copies == 1:
            return
        tensor, num_replicas = parallelism.tensor, parallelism.data
        part_bytes = whole_bytes(
            payload_bytes(self._case.workload, self._buckets[number], tensor) / num_replicas
        )
        size = part_bytes if kind is CollectiveType.ALL_GATHER else part_bytes * num_replicas
        ranks = self._layout.ranks[holder]
        for place, rank in enumerate(ranks):
            members = ranks[place % tensor :: tensor]
            self._join(
                f"{_WORDS[kind]} of gradient bucket {number} in the domain",
                kind,
                size,
                members=members,
                number=number,
                rank=rank,
                ready=ready[place],
                inside=(members, kind is CollectiveType.ALL_GATHER),
            )

    def _join(
        self,
        name: str,
        kind: CollectiveType,
        num_bytes: int,
        *,
        members: tuple[int, ...],
        number: BucketNumber,
        rank: int,
        ready: list[int],
        inside: _Inside | None = None,
    ) -> None:
        group = self._draft.group(members, number)
        node = self._draft.npus[rank].collective(name, kind, num_bytes, group, ready)
        self._joined.append((rank, inside, number, node))
        ready[:] = [node]

    def _pause(
        self, number: BucketNumber, holder: int, ready: list[list[int]], kind: CollectiveType
    ) -> None:
        """Let the time pass that the replicas of a device take for an exchange."""
        stage = self._case.stages[holder]
        parallelism = stage.parallelism
        if parallelism is None or parallelism.copies == 1:
            return
        bucket = self._buckets[number]
        half_s = half_sum_s(self._case.workload, stage, bucket, NO_CORRECTIONS)
        if half_s is None:  # passes gather the weights
            return
        duration_s = 2 * half_s if kind is CollectiveType.ALL_REDUCE else half_s
        rank = self._layout.ranks[holder][0]
        turn = rank, kind is CollectiveType.ALL_GATHER
        before = [self._paused[turn]] if turn in self._paused else []
        node = self._draft.npus[rank].pause(
            f"{_WORDS[kind]} of gradient bucket {number} in the domain",
            whole_bytes(payload_bytes(self._case.workload, bucket, parallelism.tensor)),
            duration_s,
            [*ready[0], *before],
        )
        self._paused[turn] = node
        ready[0][:] = [node]


_WORDS = {
    CollectiveType.ALL_REDUCE: "sum",
    CollectiveType.REDUCE_SCATTER: "reduction",
    CollectiveType.ALL_GATHER: "gathering",
}
