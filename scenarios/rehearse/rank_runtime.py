"""A rank of the reference runtime: it does the operations of its row, step by step."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch import distributed as dist

from scenarios.iteration.reference_operations import RankOperations, RuntimeOperation
from scenarios.iteration.runtime_job import RuntimeJob, rank_of_stages
from scenarios.rehearse.bucket_exchange import BucketExchange, RunScale
from scenarios.rehearse.receive_places import connection_of, sender_of
from scenarios.rehearse.small_llama import (
    ACTIVATION_VALUES,
    HIDDEN,
    SEQUENCE,
    SEQUENCES,
    TOKENS,
    LlamaStage,
    text_batch,
)

_SHAPE = (SEQUENCES, SEQUENCE, HIDDEN)


class StagePasses:
    """A stage of one replica with what its passes leave for later ones.

    Gradients are those of the sum of losses times ``weight``.
    """

    def __init__(self, model: LlamaStage, first_microbatch: int, weight: float) -> None:
        self.model = model
        self.loss = 0.0
        self._weight, self._step = weight, 0
        self._first_microbatch = first_microbatch
        self._parameters = list(model.parameters())
        self._forward: dict[int, tuple[Tensor, Tensor]] = {}
        self._gradients: dict[int, Tensor | None] = {}

    def begin(self, step: int) -> None:
        """Begin a step without gradients."""
        self._step, self.loss = step, 0.0
        self.model.zero_grad()

    def do(self, kind: str, microbatch: int, content: Tensor | None) -> Tensor | None:
        """Do a pass F, B, I or W with the values that have come for it; values to send, if any."""
        if kind == "F":
            return self._do_forward(microbatch, content)
        if kind == "W":
            out = self._forward.pop(microbatch)[1]
            self._add(None, out, self._gradients.pop(microbatch))
            return None
        gradient = None if content is None else content.view(_SHAPE)
        x, out = self._forward[microbatch]
        if kind == "B":
            del self._forward[microbatch]
            return self._add(x if x.requires_grad else None, out, gradient)
        self._gradients[microbatch] = gradient
        if not x.requires_grad:
            return None
        own: tuple[Tensor, ...] = torch.autograd.grad(out, x, gradient, retain_graph=True)
        return own[0].flatten()

    def _do_forward(self, microbatch: int, content: Tensor | None) -> Tensor | None:
        device = self._parameters[0].device
        batch = text_batch(self._step, self._first_microbatch + microbatch)
        tokens, targets = (one.to(device) for one in batch)
        x = tokens if content is None else content.view(_SHAPE).requires_grad_()
        out: Tensor = self.model(x, targets)
        self._forward[microbatch] = x, out
        if out.dim():
            return out.detach().flatten()
        self.loss += self._weight * out.item()
        self._forward[microbatch] = x, out * self._weight
        return None

    def _add(self, x: Tensor | None, out: Tensor, gradient: Tensor | None) -> Tensor | None:
        """Add gradients of parameters; return that of the input, if there is one."""
        inputs: Sequence[Tensor] = (*self._parameters, *(() if x is None else (x,)))
        own: tuple[Tensor, ...] = torch.autograd.grad(out, inputs, gradient)
        for parameter, one in zip(self._parameters, own, strict=False):
            parameter.grad = one if parameter.grad is None else parameter.grad + one
        return None if x is None else own[-1].flatten()


RATE = 0.1
"""Step size of the inner optimiser, plain SGD."""

_PASSES = "FBIW"
_VALUE_BYTES = 4

_Message = tuple[str, int, int]
"""Kind, receiving stage, microbatch."""


@dataclass(kw_only=True)
class StepRecord:
    """Record of a rank's step: passes as stage, kind, microbatch, start and end; loss.

    Times count from the start of the step. [s]
    """

    loss: float | None = None
    spans: list[tuple[int, str, int, float, float]] = field(default_factory=list)
    end_s: float = 0.0


class RankRuntime:
    """Stages of a rank, its connections, and messages under way.

    ``is_slept`` lets a pass take the time that the plan says, which its computation is part of.
    Replicas exchange after every ``period`` steps. Stages have ``most_layers`` at most.
    """

    def __init__(
        self,
        job: RuntimeJob,
        operations: RankOperations,
        *,
        scale: RunScale,
        is_slept: bool,
        num_connections: int,
        period: int,
        most_layers: int,
        device: torch.device,
    ) -> None:
        self._job, self._operations, self._scale = job, operations, scale
        self._is_slept, self._device, self._most_layers = is_slept, device, most_layers
        self._groups = [dist.new_group() for _ in range(num_connections)]
        self._rank = dist.get_rank()
        self._rank_of = rank_of_stages(job)
        self._stages = {stage: self._passes_of(stage) for stage in job.stages_of_rank[self._rank]}
        models = {stage: own.model for stage, own in self._stages.items()}
        self._exchange = BucketExchange(job, models, scale, dist.new_group(), period)
        num_bytes = job.message_bytes * scale.num_bytes
        self._num_values = max(ACTIVATION_VALUES, int(num_bytes / _VALUE_BYTES))
        self._received: dict[_Message, tuple[Tensor, dist.Work]] = {}
        self._arrived: dict[_Message, Tensor] = {}
        self._sent: dict[tuple[str, int, int], tuple[dist.Work, Tensor]] = {}
        self._record, self._start_s, self._num_left = StepRecord(), 0.0, dict[int, int]()

    def _passes_of(self, stage: int) -> StagePasses:
        """A stage; losses count by all tokens of a step, or of those of the replica in DiLoCo."""
        job, own = self._job, self._job.stages[stage]
        num_layers = sum(one.num_layers for one in job.stages if one.replica == own.replica)
        is_inner = job.steps_between > 1
        count = job.shares[own.replica] if is_inner else sum(job.shares)
        model = LlamaStage(own.first_layer, own.num_layers, num_layers, self._most_layers)
        model.to(self._device)
        return StagePasses(model, sum(job.shares[: own.replica]), 1.0 / (count * TOKENS))

    def run_step(self, step: int, start_s: float) -> StepRecord:
        """Do a step that begins at a time of the monotonic clock."""
        self._record, self._start_s = StepRecord(), start_s
        self._num_left = {one: self._share(one) for one in self._stages}
        for own in self._stages.values():
            own.begin(step)
        self._exchange.begin(step)
        self._sleep_until(start_s)
        for one in self._operations:
            self._do(one)
        self._exchange.finish()
        self._update()
        self._exchange.exchange_changes()
        self._record.end_s = time.monotonic() - start_s
        for work, _ in self._sent.values():
            work.wait()
        self._sent.clear()
        losses = [own.loss for own in self._stages.values() if own.model.head is not None]
        self._record.loss = losses[0] if losses else None
        return self._record

    def _share(self, stage: int) -> int:
        return self._job.shares[self._job.stages[stage].replica]

    def _update(self) -> None:
        with torch.no_grad():
            for own in self._stages.values():
                for parameter in own.model.parameters():
                    if parameter.grad is not None:
                        parameter.sub_(RATE * parameter.grad)
        time.sleep(self._job.update_s * self._scale.time if self._is_slept else 0.0)

    def _do(self, one: RuntimeOperation) -> None:
        if one.action == "":
            self._compute(one)
        elif one.action == "RECV":
            content = torch.empty(self._num_values, device=self._device)
            source = sender_of(one, self._rank_of)
            work = dist.irecv(content, source, group=self._group(source, self._rank, one))
            assert work is not None
            self._received[one.kind, one.stage, one.microbatch] = content, work
        elif one.action == "WAIT":
            message = one.kind, one.stage, one.microbatch
            if message in self._received:
                content, work = self._received.pop(message)
                work.wait()
                self._arrived[message] = content[:ACTIVATION_VALUES]
        elif one.action == "SEND":
            self._send(one)
        else:
            self._sent.pop((one.kind, one.stage, one.microbatch))[0].wait()

    def _group(self, sender: int, receiver: int, one: RuntimeOperation) -> dist.ProcessGroup:
        number = connection_of(sender, receiver, one.microbatch, len(self._groups))
        found = self._groups[number]
        assert isinstance(found, dist.ProcessGroup)
        return found

    def _send(self, one: RuntimeOperation) -> None:
        """Send what a pass has left; to a stage of this rank it is handed over."""
        stage = one.stage + (1 if one.kind == "F" else -1)
        target, content = self._rank_of[stage], self._arrived.pop(("out" + one.kind, *one[::3]))
        if target == self._rank:
            self._arrived[one.kind, stage, one.microbatch] = content
            return
        padded = torch.zeros(self._num_values, device=self._device)
        padded[:ACTIVATION_VALUES] = content
        work = dist.isend(padded, target, group=self._group(self._rank, target, one))
        assert work is not None
        self._sent[one.kind, one.stage, one.microbatch] = work, padded

    def _compute(self, one: RuntimeOperation) -> None:
        begun_s = time.monotonic()
        own, kind = self._stages[one.stage], one.kind
        message = "F" if kind == "F" else "B"
        content = None if kind == "W" else self._arrived.pop((message, *one[::3]), None)
        out = own.do(kind, one.microbatch, content)
        if out is not None:
            self._arrived["out" + message, one.stage, one.microbatch] = out
        duration_s = 0.0
        if self._is_slept:
            durations_s = self._job.stages[one.stage].durations_s
            duration_s = durations_s[_PASSES.index(kind)] * self._scale.time
        if kind in "BW":
            self._num_left[one.stage] -= 1
            if self._num_left[one.stage] == 0:
                for left, released in self._exchange.releases(one.stage):
                    self._sleep_until(begun_s + (1.0 - left) * duration_s)
                    released.set()
        self._sleep_until(begun_s + duration_s)
        ended_s = time.monotonic()
        times = begun_s - self._start_s, ended_s - self._start_s
        self._record.spans.append((one.stage, kind, one.microbatch, *times))

    @staticmethod
    def _sleep_until(moment_s: float) -> None:
        time.sleep(max(0.0, moment_s - time.monotonic()))

    def parameters(self) -> Sequence[Tensor]:
        """Parameters of all stages, in their order, after the last step."""
        self._exchange.take_in_rest()
        return [one for own in self._stages.values() for one in own.model.parameters()]
