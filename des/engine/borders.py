"""Borders between the stages of a pipeline: what passes their messages on."""

from collections.abc import Sequence

from des.clock import Clock, Message
from des.costs.local_borders import border_inside
from des.engine.network import Carrier, Parcel, Send
from des.engine.stage_run import LocalWires, StageRun
from des.job.workload import Workload
from des.plan.corrections import Corrections
from des.plan.plan import Plan
from des.schedules import Pass
from des.world.topology import Topology


class Borders:
    """Messages over a network, over the wires inside a domain, or within a device."""

    def __init__(
        self,
        clock: Clock,
        network: Carrier,
        topology: Topology,
        workload: Workload,
        plan: Plan,
        *,
        corrections: Corrections,
        local: LocalWires,
    ) -> None:
        self._clock, self._network, self._topology = clock, network, topology
        self._workload, self._plan, self._corrections = workload, plan, corrections
        self._local = local

    def join(self, stages: Sequence[StageRun], *, first_number: int) -> None:
        """Give each stage the messages that it waits for, and what sends those that it makes.

        Messages are numbered by receiver, activations before gradients, microbatch.
        """
        plan, num_microbatches = self._plan, self._workload.num_microbatches
        shares = plan.microbatches_of_replicas(num_microbatches)
        first = 0
        for num_stages, share in zip(plan.replica_sizes, shares, strict=True):
            for lower in range(first + 1, first + num_stages):
                upper = lower - 1
                number = first_number + 2 * lower * num_microbatches
                self._connect(stages[upper], stages[lower], ("F",), self._messages(number, share))
                number = first_number + (2 * upper + 1) * num_microbatches
                backward = self._messages(number, share)
                self._connect(stages[lower], stages[upper], ("B", "D"), backward)
            first += num_stages

    def _messages(self, first_number: int, num_messages: int) -> list[Message]:
        return [
            Message(self._clock, first_number + microbatch, microbatch)
            for microbatch in range(num_messages)
        ]

    def _connect(
        self,
        sender: StageRun,
        receiver: StageRun,
        kinds: tuple[Pass, ...],
        messages: Sequence[Message],
    ) -> None:
        """Prepare what one stage sends to a neighbour, which one of some kinds of passes makes."""
        send = self._way(sender, receiver, kinds[0])
        for kind in kinds:
            made_by, needed_by = sender.passes[kind], receiver.passes[kind]
            made_by.outputs, made_by.send, needed_by.inputs = messages, send, messages

    def _way(self, sender: StageRun, receiver: StageRun, kind: str) -> Send:
        """Return what passes a message on."""
        topology, plan = self._topology, self._plan
        source, target = sender.stage.domain, receiver.stage.domain
        if source != target:
            parcel = Parcel(
                num_bytes=self._workload.message_bytes / plan.activation_compression,
                route=topology.route(source, target),
                stage=sender.number,
                kind=kind,
                sender=sender.device.number,
            )
            return self._network.way(parcel)
        stages = (sender.stage, receiver.stage)
        border = border_inside(topology, self._workload, plan, stages, self._corrections)
        return self._local.way(sender.device.number, receiver.device.number, border)
