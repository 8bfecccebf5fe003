"""Execution traces of an iteration: what every NPU computes and sends, in the order of the plan."""

from collections.abc import Mapping, Sequence
from typing import Literal, cast

from astra_sim.files.execution_trace import CollectiveType
from calibration.cases.case import PlacementCase, computing_times_s
from calibration.reference.et_files import write_traces
from calibration.reference.gradient_nodes import GradientNodes
from calibration.reference.npu_layout import Layout
from calibration.reference.trace_nodes import MOST_TAG, Draft, whole_bytes, whole_ns
from calibration.reference.trace_set import TraceSet
from des.base.lazy import lazy_imports
from des.costs.stage_times import TENSOR_ALL_REDUCES_PER_PASS
from des.costs.update_times import update_s
from des.plan.corrections import NO_CORRECTIONS
from des.schedules import Operation, Pass

with lazy_imports(__name__):
    from des.compiled import simulate


__all__ = ["TensorSums", "TraceSet", "build_traces", "write_traces"]

TensorSums = Literal["pass", "layer"]
"""All-reduces of tensor parallelism: one for a pass, of all bytes; or one after the other."""

SIGNAL_BYTES = 1
"""Size of what GPUs of a device tell each other when their parts of a message have come."""


def build_traces(case: PlacementCase, *, tensor_sums: TensorSums = "pass") -> TraceSet:
    """Write an iteration as execution traces, for a network of the case's ``transport.sharing``.

    Parameters
    ----------
    tensor_sums
        Only at granularity ``gpu``: whether the all-reduces of tensor parallelism, two a layer and
        pass in truth, are one collective a pass. That takes a small part of the time to simulate
        and leaves out all but one of their latencies.

    Raises
    ------
    UnreachableError
        If the plan sends between domains that no path joins.
    ValueError
        If a figure does not fit its field, or there are too many microbatches for the tags.

    Notes
    -----
    Every operation of the plan's schedule is a computation that waits for the one before it on its
    device and for its input; a send waits for the computation that makes it. Numbers follow the
    order in which `des.simulate` starts operations. That is the order of the schedule on a device
    of one worker. Where several come first, come first served, it settles who is first, which would
    else be up to rounding; and keeps a device to one operation also while its GPUs sum up.

    Messages of several hops are received and sent on by the domains between, each as a whole.

    Where a device's GPUs share its work, each computes for the same time. They start together, as
    a device does in `des`, when all parts of a message have come: messages of one byte say so where
    parts come one after the other, as they do where messages queue, or not to all.

    A device of several GPUs does one sum inside itself at a time. Where messages queue, its links
    see to that; where they never meet, a sum waits for the one before.

    Where layer times are from shapes or a profile, every NPU that computes ends with the time of
    the slowest device from its last gradient on, as all devices do in `des`.
    """
    return _Writer(case, tensor_sums).write()


class _Writer:
    """Walks through the operations of an iteration by the time of their start."""

    def __init__(self, case: PlacementCase, tensor_sums: TensorSums) -> None:
        self._case, self._tensor_sums = case, tensor_sums
        self._messages_queue = case.topology.transport.sharing != "none"
        self._layout = Layout(case)
        self._draft = Draft(num_npus=case.num_npus, peak_flops_per_s=case.peak_flops_per_s)
        self._gradients = GradientNodes(case, self._layout, self._draft)
        self._durations_s = computing_times_s(case)
        self._last: dict[int, int] = {}
        """Node that ends the last operation of each NPU."""
        num_tags = 2 * len(case.stages) * case.workload.num_microbatches
        if num_tags > MOST_TAG + 1:
            raise ValueError(
                f"trace: there must be at most {MOST_TAG + 1} tags, 2 a stage and microbatch, "
                f"got {num_tags}"
            )

    def write(self) -> TraceSet:
        """Add all nodes."""
        for operation in self._operations():
            self._do(operation)
        if self._case.topology.transport.endpoints == "one_in_flight":
            self._gradients.keep_order(among="all exchanges")
        elif not self._messages_queue:
            self._gradients.keep_order(among="sums inside")
        self._update()
        return TraceSet(
            traces=tuple(npu.trace() for npu in self._draft.npus),
            groups=self._draft.groups,
            npus_per_domain=self._case.gpus_per_domain,
        )

    def _update(self) -> None:
        """Add the optimiser's step and the overhead of an iteration, after all else of an NPU."""
        case = self._case
        duration_s = update_s(case.workload, case.stages, NO_CORRECTIONS)
        if duration_s == 0.0:
            return
        for rank in sorted({rank for ranks in self._layout.ranks for rank in ranks}):
            npu = self._draft.npus[rank]
            npu.compute("update of the weights", whole_ns(duration_s), npu.last())

    def _operations(self) -> list[Operation]:
        """All operations by the time of their start."""
        case = self._case
        spans = simulate.simulate_compiled(case.topology, case.workload, case.plan).spans
        return [
            Operation(cast(Pass, span.kind), span.microbatch, span.stage)
            for span in sorted(spans, key=lambda span: span.start_s)
        ]

    def _do(self, operation: Operation) -> None:
        """Add an operation at all NPUs of its stage, what it waits for and what it sends on."""
        stage = operation.stage
        source, target = self._neighbours(operation)
        made = self._gradients.made_by(operation)
        waits = (
            [[] for _ in self._layout.ranks[stage]]
            if source is None
            else self._receive(source, operation)
        )
        ends: list[list[int]] = []
        makers: dict[int, list[list[int]]] = {number: [] for number in made}
        for rank, after in zip(self._layout.ranks[stage], waits, strict=True):
            if rank in self._last:
                after.append(self._last[rank])
            end, maker_of = self._compute(operation, rank, after, made)
            self._last[rank] = end
            ends.append([end])
            for number, maker in maker_of.items():
                makers[number].append([maker])
        if target is not None:
            self._send(target, operation, ends)
        for number, each in makers.items():
            self._gradients.exchange(number, stage, each)

    def _neighbours(self, operation: Operation) -> tuple[int | None, int | None]:
        """Stage that an operation gets its input from, and the one it makes the input of."""
        kind, _, stage = operation
        if kind == "W":
            return None, None
        stages = self._case.stages
        upper, lower = (
            other
            if 0 <= other < len(stages) and stages[other].replica == stages[stage].replica
            else None
            for other in (stage - 1, stage + 1)
        )
        return (upper, lower) if kind == "F" else (lower, upper)

    def _compute(
        self, operation: Operation, rank: int, after: Sequence[int], made: Mapping[int, float]
    ) -> tuple[int, dict[int, int]]:
        """Add a pass, in pieces where it makes buckets of gradients; returns what makes which."""
        npu = self._draft.npus[rank]
        duration_ns = whole_ns(self._durations_s[operation.stage][operation.kind])
        cuts_ns = {
            number: min(max(1, round(fraction * duration_ns)), duration_ns)
            for number, fraction in made.items()
        }
        node_until: dict[int, int] = {}
        begun_ns = 0
        for until_ns in sorted({*cuts_ns.values(), duration_ns}):
            node = npu.compute(str(operation), until_ns - begun_ns, after)
            node_until[until_ns] = node
            after, begun_ns = [node], until_ns
        node_until[duration_ns] = self._sum_over_tensor(operation, rank, node_until[duration_ns])
        makers = {number: node_until[cut_ns] for number, cut_ns in cuts_ns.items()}
        return node_until[duration_ns], makers

    def _sum_over_tensor(self, operation: Operation, rank: int, after: int) -> int:
        """Add the all-reduces of a pass among the GPUs that share its layers; returns the last."""
        kind, _, index = operation
        stage, parallelism = self._case.stages[index].stage, self._case.stages[index].parallelism
        if self._case.granularity == "domain" or parallelism is None:
            return after
        if parallelism.tensor == 1 or kind == "W":
            return after
        ranks, size = self._layout.ranks[index], parallelism.tensor
        first = ranks.index(rank) // size * size
        group = self._draft.group(ranks[first : first + size], "tensor")
        num_sums = TENSOR_ALL_REDUCES_PER_PASS * stage.num_layers
        part_bytes = self._case.workload.message_bytes / parallelism.data / size
        if self._tensor_sums == "pass":
            part_bytes, num_sums = part_bytes * num_sums, 1
        for _ in range(num_sums):
            after = self._draft.npus[rank].collective(
                f"sum of {operation} over the tensor ranks",
                CollectiveType.ALL_REDUCE,
                whole_bytes(part_bytes) * size,
                group,
                [after],
            )
        return after

    def _send(self, target: int, operation: Operation, ends: Sequence[Sequence[int]]) -> None:
        """Add the sends of an operation's output and, at NPUs on the way, what passes it on."""
        tag, npus = self._tag(operation, target), self._draft.npus
        paths = self._layout.paths(operation.stage, target)
        num_bytes = self._part_bytes(operation.stage, target)
        for path, after in zip(paths, ends, strict=False):
            npus[path[0]].send(f"output of {operation}", path[1], num_bytes, tag, after)
        name = f"output of {operation} on its way"
        for hop in range(1, len(paths[0]) - 1):
            ranks = [path[hop] for path in paths]
            received = [
                npus[path[hop]].receive(name, path[hop - 1], num_bytes, tag) for path in paths
            ]
            waits = [[node] for node in received]
            if self._messages_queue:
                waits = self._gather(ranks, name, tag, received)
            for path, parts in zip(paths, waits, strict=True):
                npus[path[hop]].send(name, path[hop + 1], num_bytes, tag, parts)

    def _receive(self, source: int, operation: Operation) -> list[list[int]]:
        """Add the receives of an operation's input; returns them, NPU by NPU of the stage."""
        stage, npus = operation.stage, self._draft.npus
        tag, name = self._tag(operation, stage), f"input of {operation}"
        paths = self._layout.paths(source, stage)
        num_bytes = self._part_bytes(source, stage)
        received = [npus[path[-1]].receive(name, path[-2], num_bytes, tag) for path in paths]
        if self._is_whole_when_a_part_is(source, stage):
            return [[node] for node in received]
        return self._gather(self._layout.ranks[stage], name, tag, received)

    def _is_whole_when_a_part_is(self, source: int, stage: int) -> bool:
        """Whether an NPU may start with its part of a message, as the others start with it.

        Parts within a domain come at the same time. Where all GPUs of a device share every layer,
        and each gets a part, the sum at the end of a pass waits for the last of them.
        """
        here, there = self._case.stages[stage], self._case.stages[source]
        num_gpus = len(self._layout.ranks[stage])
        if num_gpus == 1 or here.stage.domain == there.stage.domain:
            return True
        sums_up = here.parallelism is not None and here.parallelism.data == 1
        return num_gpus == self._case.num_endpoint_pairs and (sums_up or not self._messages_queue)

    def _gather(
        self, ranks: Sequence[int], name: str, tag: int, received: Sequence[int]
    ) -> list[list[int]]:
        """Let the GPUs of a domain tell the first one of their parts, and it all of the whole."""
        (first, *others), npus = ranks, self._draft.npus
        told = [received[0]]
        for rank, part in zip(others, received[1:], strict=False):
            npus[rank].send(name, first, SIGNAL_BYTES, tag, [part])
            told.append(npus[first].receive(name, rank, SIGNAL_BYTES, tag))
        waits = [told]
        for rank in others:
            npus[first].send(name, rank, SIGNAL_BYTES, tag, told)
            waits.append([npus[rank].receive(name, first, SIGNAL_BYTES, tag)])
        return waits

    def _tag(self, operation: Operation, receiver: int) -> int:
        """Number of a message: by receiver, activations before gradients, microbatch."""
        way = 2 * receiver + (operation.kind != "F")
        return way * self._case.workload.num_microbatches + operation.microbatch

    def _part_bytes(self, sender: int, receiver: int) -> int:
        """Bytes of each part of a message between two stages."""
        case, num_bytes = self._case, self._case.workload.message_bytes
        here, there = case.stages[sender], case.stages[receiver]
        if here.stage.domain != there.stage.domain:
            sent_bytes = num_bytes / case.plan.activation_compression
            return whole_bytes(sent_bytes / case.num_endpoint_pairs)
        assert here.parallelism is not None  # a domain of one device holds one stage in a row
        return whole_bytes(num_bytes / here.parallelism.data)
