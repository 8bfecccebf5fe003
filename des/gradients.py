"""Summing up gradients over the replicas: inside a domain, and over the WAN between domains."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from types import MappingProxyType

import simpy

from des.buckets import Bucket, buckets_behind
from des.clock import Clock, Message
from des.collectives import all_gather_s, reduce_scatter_s
from des.corrections import NO_CORRECTIONS, Corrections
from des.network import Network, Parcel
from des.plan import Plan, device_numbers, plan_stages, replica_stages
from des.topology import Topology
from des.transformer import GRADIENT_BYTES
from des.workload import Workload

Collective = Callable[[float, int, float, float], float]
_BEFORE: Mapping[str, tuple[Collective, ...]] = MappingProxyType(
    {
        "part": (reduce_scatter_s,),
        "first": (reduce_scatter_s, all_gather_s),
        "done": (),
    }
)
"""What the GPUs of a device do among themselves before the ring between domains."""


class GradientSums:
    """The exchanges of one iteration: hierarchical all-reduces of buckets of layers.

    Inside each domain a ring reduce-scatter over the replicas of a device leaves every GPU its
    part; a ring over the domains sums the parts up in ``2 (R - 1)`` steps, whose messages share the
    links with all others; a ring all-gather inside completes it. Where changes of parameters are
    exchanged, the device's own sum of gradients comes first, or is done already.
    """

    def __init__(
        self,
        clock: Clock,
        network: Network,
        topology: Topology,
        workload: Workload,
        plan: Plan,
        *,
        buckets: Sequence[Bucket],
    ) -> None:
        self._clock, self._network = clock, network
        self._topology, self._workload, self._plan = topology, workload, plan
        self._buckets = buckets
        self.are_due = bool(buckets)
        self.end_s = 0.0
        if not self.are_due:
            return
        self._stages = plan_stages(plan)
        self._device_of = device_numbers(self._stages)
        self._ready = [[Message(clock) for _ in bucket.stages] for bucket in self._buckets]
        shares = plan.microbatches_of_replicas(workload.num_microbatches)
        self._passes_left: list[int] = []
        self._replica_of: list[int] = []
        for replica, placement in enumerate(plan.placements):
            num_stages = len(replica_stages(placement, plan.parallelism))
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
        """Let each bucket of a stage be ready when the pass has come down to its first layer.

        A pass spends its time on the layers in proportion to the FLOPs of their whole backward
        pass.
        """
        flops = self._workload.backward_flops
        layers = self._stages[stage].layers
        whole = sum(flops[layers])
        for bucket, ready in zip(self._buckets, self._ready, strict=True):
            if stage in bucket.stages:
                left = sum(flops[layers.start : bucket.first_layer]) / whole
                ready_s = end_s - left * (end_s - start_s)  # the last one exactly at the end
                ready[bucket.stages.index(stage)].arrive_at(max(start_s, ready_s))

    def release_all(self) -> None:
        """Let all buckets be ready now."""
        for ready in self._ready if self.are_due else ():
            for message in ready:
                message.arrive_at(self._clock.now)

    def processes(self) -> Iterator[simpy.Process]:
        """Start the exchanges, last layers first, as the backward pass makes them."""
        for number, bucket in enumerate(self._buckets):
            num_steps = 2 * (len(bucket.stages) - 1) if bucket.between_domains else 0
            inboxes = [[Message(self._clock) for _ in range(num_steps)] for _ in bucket.stages]
            for member in range(len(bucket.stages)):
                yield self._clock.process(self._take_part(number, member, inboxes))

    def _take_part(
        self, number: int, member: int, inboxes: Sequence[Sequence[Message]]
    ) -> Generator[simpy.Event, None, None]:
        """One replica's way through one exchange."""
        bucket = self._buckets[number]
        stage = bucket.stages[member]
        yield self._ready[number][member]
        for collective in _BEFORE[bucket.inside]:
            yield self._inside(stage, bucket, collective)
        after = (member + 1) % len(bucket.stages)
        for step, message in enumerate(inboxes[member]):
            parcel = Parcel(
                num_bytes=bucket.num_bytes / len(bucket.stages),
                route=self._topology.route(
                    self._stages[stage].domain, self._stages[bucket.stages[after]].domain
                ),
                stage=stage,
                kind="G",
                microbatch=number,
                sender=self._device_of[stage],
            )
            self._network.send(parcel, inboxes[after][step], self._clock.now)
            yield message
        yield self._inside(stage, bucket, all_gather_s)
        self.end_s = max(self.end_s, self._clock.now)

    def _inside(self, stage: int, bucket: Bucket, collective: Collective) -> simpy.Event:
        """Half an all-reduce among the replicas of one device, which does one at a time."""
        index = self._stages[stage].domain
        parallelism = self._plan.parallelism_of(index)
        if parallelism is None:
            return self._clock.at(self._clock.now)
        domain = self._topology.domains[index]
        parameters = self._workload.num_parameters
        layers = slice(bucket.first_layer, bucket.first_layer + bucket.num_layers)
        duration_s = collective(
            GRADIENT_BYTES * sum(parameters[layers]) / parallelism.tensor,
            parallelism.data,
            domain.intra_bandwidth_bytes_per_s,
            domain.intra_latency_s,
        )
        device = self._device_of[stage]
        start_s = max(self._clock.now, self._inner_free_s[device])
        self._inner_free_s[device] = start_s + duration_s
        return self._clock.at(start_s + duration_s)


def exchange_behind_s(
    topology: Topology,
    workload: Workload,
    plan: Plan,
    step: int,
    corrections: Corrections = NO_CORRECTIONS,
) -> float:
    """Time of the exchange that starts after a step and goes on behind the next ones. [s]

    It has the links to itself here; 0 where nothing is due or what is due does not wait.
    """
    clock = Clock()
    network = Network(clock, topology, corrections)
    buckets = buckets_behind(workload, plan, step)
    sums = GradientSums(clock, network, topology, workload, plan, buckets=buckets)
    sums.release_all()
    clock.run(until=clock.all_of(list(sums.processes())))
    return sums.end_s
