"""Summing up gradients over the replicas: inside a domain, and over the WAN between domains."""

from collections.abc import Generator, Iterator, Sequence
from itertools import count

import simpy

from des.clock import MEMBER, Clock, Message, Moment
from des.costs.inner_sums import half_sum_s, halves_after, halves_before, left_fraction
from des.costs.local_borders import summed_part_inside
from des.engine.network import Carrier, Network, Parcel, Send
from des.engine.stage_run import LocalWires
from des.job.workload import Workload
from des.plan.buckets import Bucket, buckets_behind
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.exchange_steps import Step, Steps, exchange_steps, num_messages, num_parts
from des.plan.plan import Plan
from des.world.topology import Topology


class GradientSums:
    """The exchanges of one iteration: hierarchical all-reduces of buckets of layers.

    Inside each domain a ring reduce-scatter over the replicas of a device leaves every GPU its
    part; a ring or a tree of domains sums the parts up, see `des.plan.exchange_steps`, by messages
    that share the links with all others; a ring all-gather inside completes it. Where changes of
    parameters are exchanged, the device's own sum of gradients comes first, or is done already.
    Where the optimiser is sharded over the replicas, gradients are only scattered; new weights are
    gathered between domains and inside when every device has updated its part.
    """

    def __init__(
        self,
        clock: Clock,
        network: Carrier,
        topology: Topology,
        workload: Workload,
        plan: Plan,
        *,
        buckets: Sequence[Bucket],
        corrections: Corrections,
        local: LocalWires,
        first_number: int = 0,
    ) -> None:
        self._clock, self._network, self._local = clock, network, local
        self._topology, self._workload, self._plan = topology, workload, plan
        self._buckets, self._corrections = buckets, corrections
        self._first_number = first_number
        self.are_due = bool(buckets)
        self.end_s = 0.0
        self._members: list[list[Moment]] = []
        if not self.are_due:
            return
        self._stages, self._device_of = plan.stages, plan.device_of_stage
        numbers = count(first_number)
        self._members = [
            [Moment(clock, MEMBER + next(numbers)) for _ in bucket.stages] for bucket in buckets
        ]
        shares = plan.microbatches_of_replicas(workload.num_microbatches)
        self._passes_left: list[int] = []
        self._replica_of: list[int] = []
        for replica, num_stages in enumerate(plan.replica_sizes):
            self._passes_left += [shares[replica]] * num_stages
            self._replica_of += [replica] * num_stages
        self._stages_left = [self._replica_of.count(each) for each in range(len(shares))]
        self._replica_end_s = [0.0] * len(shares)
        self._inner_free_s = [0.0] * len(self._stages)

    def made(self, stage: int, start_s: float, end_s: float) -> None:
        """Note a pass that makes gradients of a stage; the last one completes them."""
        self._passes_left[stage] -= 1
        if self._passes_left[stage] > 0:
            return
        replica = self._replica_of[stage]
        self._stages_left[replica] -= 1
        self._replica_end_s[replica] = max(self._replica_end_s[replica], end_s)
        if self._plan.exchange.overlapped:
            self._release(stage, start_s, end_s)
        elif self._stages_left[replica] == 0:
            finished_s = self._replica_end_s[replica]
            for each, other in enumerate(self._replica_of):
                if other == replica:
                    self._release(each, finished_s, finished_s)

    def _release(self, stage: int, start_s: float, end_s: float) -> None:
        """Let each bucket of a stage be ready when the pass has come down to its first layer."""
        for bucket, members in zip(self._buckets, self._members, strict=True):
            if stage in bucket.stages and not bucket.after_step:
                left = left_fraction(self._workload, self._stages[stage], bucket)
                ready_s = end_s - left * (end_s - start_s)  # the last one exactly at the end
                members[bucket.stages.index(stage)].happen_at(max(start_s, ready_s))

    @property
    def num_late(self) -> int:
        """Members, the last ones, that wait for the end of the step."""
        return sum(len(bucket.stages) for bucket in self._buckets if bucket.after_step)

    def release_late(self, time_s: float) -> None:
        """Let all buckets that wait for the end of the step be ready at a time."""
        for bucket, members in zip(self._buckets, self._members, strict=True):
            for member in members if bucket.after_step else ():
                member.happen_at(time_s)

    def release_all(self) -> None:
        """Let all buckets be ready now."""
        for members in self._members:
            for member in members:
                member.happen_at(self._clock.now)

    def processes(self) -> Iterator[simpy.Process]:
        """Start the exchanges, last layers first, as the backward pass makes them.

        Their messages are numbered after those of the pipelines.
        """
        num_stages = len(self._stages) if self.are_due else 0
        numbers = count(self._first_number + 2 * num_stages * self._workload.num_microbatches)
        for number, bucket in enumerate(self._buckets):
            steps = self._steps_of(bucket)
            messages = [
                Message(self._clock, next(numbers), number) for _ in range(num_messages(steps))
            ]
            for member in range(len(bucket.stages)):
                own = steps[member] if steps else ()
                yield self._clock.process(self._take_part(number, member, own, messages))

    def _steps_of(self, bucket: Bucket) -> Steps:
        """Steps between domains, none where the sum stays in one."""
        if not bucket.between_domains:
            return ()
        is_half = bucket.half is not None
        return exchange_steps(self._plan.exchange.tree, len(bucket.stages), is_half=is_half)

    def _take_part(
        self, number: int, position: int, steps: Sequence[Step], messages: Sequence[Message]
    ) -> Generator[simpy.Event, None, None]:
        """One replica's way through one exchange."""
        bucket, member = self._buckets[number], self._members[number][position]
        stage = bucket.stages[position]
        yield member
        for _ in range(halves_before(self._plan, self._stages[stage], bucket)):
            yield from self._inside(member.rank, stage, bucket)
        ways = {
            other: self._way(bucket, stage, bucket.stages[other])
            for other in {step.other: None for step in steps if step.is_sent}
        }
        for step in steps:
            if step.is_sent:
                ways[step.other](messages[step.message], self._clock.now)
            else:
                yield messages[step.message]
        for _ in range(halves_after(bucket)):
            yield from self._inside(member.rank, stage, bucket)
        self.end_s = max(self.end_s, self._clock.now)

    def _way(self, bucket: Bucket, sender: int, receiver: int) -> Send:
        """Return what passes on the part of a bucket that a message from a stage to one holds."""
        part_bytes = bucket.num_bytes / num_parts(self._plan.exchange.tree, len(bucket.stages))
        here, there = self._stages[sender], self._stages[receiver]
        if here.domain == there.domain:
            border = summed_part_inside(
                self._topology, self._plan, (here, there), part_bytes, self._corrections
            )
            return self._local.way(self._device_of[sender], self._device_of[receiver], border)
        parcel = Parcel(
            num_bytes=part_bytes,
            route=self._topology.route(here.domain, there.domain),
            stage=sender,
            kind="G",
            sender=self._device_of[sender],
        )
        return self._network.way(parcel)

    def _inside(self, rank: int, stage: int, bucket: Bucket) -> Generator[simpy.Event, None, None]:
        """Half an all-reduce among the replicas of one device, which does one at a time."""
        duration_s = half_sum_s(
            self._topology,
            self._workload,
            self._plan,
            self._stages[stage],
            bucket,
            corrections=self._corrections,
        )
        if duration_s is None:
            return
        device = self._device_of[stage]
        start_s = max(self._clock.now, self._inner_free_s[device])
        self._inner_free_s[device] = start_s + duration_s
        yield self._clock.at(start_s + duration_s, rank)


def exchange_behind_s(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    step: int,
    corrections: Corrections = NO_CORRECTIONS,
) -> float:
    """Time of the exchange that starts after a step and continues behind the next ones. [s]

    It has the links to itself here; 0 where nothing is due or what is due does not wait.
    """
    clock = Clock()
    network = Network(clock, topology, corrections)
    buckets = buckets_behind(workload, plan, step)
    sums = GradientSums(
        clock,
        network,
        topology,
        workload,
        plan,
        buckets=buckets,
        corrections=corrections,
        local=LocalWires(topology),
    )
    sums.release_all()
    members = list(sums.processes())
    clock.run_out()
    assert not any(member.is_alive for member in members)
    return sums.end_s
