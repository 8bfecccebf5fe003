"""Exchanges of a rank: sums of gradients after its passes, and of changes after its steps."""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Queue

import torch
from torch import Tensor, nn
from torch import distributed as dist

from scenarios.iteration.runtime_job import RuntimeBucket, RuntimeJob, rank_of_stages
from scenarios.rehearse.outer_bits import encoded_bytes, pack_values, unpack_values
from scenarios.rehearse.small_llama import LlamaStage


class RingSum:
    """One sum of equally long values over ranks; receives are posted when it is made.

    Every member gets the same bits: each part is summed up along the ring, and goes round once more
    as its last member has written it. Messages are filled up to a part of ``num_bytes``.
    """

    def __init__(
        self,
        ranks: Sequence[int],
        num_values: int,
        bits: float,
        num_bytes: float,
        *,
        tag: int,
        group: dist.ProcessGroup | None,
        device: torch.device,
    ) -> None:
        self._ranks, self._bits, self._tag, self._group = ranks, bits, tag, group
        self._place, self._device = ranks.index(dist.get_rank()), device
        count = len(ranks)
        self._least_bytes = int(num_bytes / count)
        self._bounds = [num_values * part // count for part in range(count + 1)]
        self._received = []
        for turn in range(2 * (count - 1)):
            content = self._message(turn + 1)
            work = dist.irecv(content, ranks[self._place - 1], group=group, tag=tag)
            assert work is not None
            self._received.append((content, work))

    def _part(self, turn: int) -> slice:
        """Part that is sent at a turn; the one that comes is sent at the next."""
        part = (self._place - turn) % len(self._ranks)
        return slice(self._bounds[part], self._bounds[part + 1])

    def _message(self, turn: int) -> Tensor:
        part = self._part(turn)
        size = max(self._least_bytes, encoded_bytes(part.stop - part.start, self._bits))
        return torch.empty(size, dtype=torch.uint8, device=self._device)

    def run(self, values: Tensor) -> Tensor:
        """Return the sum, the same on all ranks."""
        found, count, sent = values.clone(), len(self._ranks), []
        outgoing = self._message(0)
        self._write(found[self._part(0)], outgoing)
        for turn, (content, arrival) in enumerate(self._received):
            after = self._ranks[(self._place + 1) % count]
            sent.append(dist.isend(outgoing, after, group=self._group, tag=self._tag))
            arrival.wait()
            part, outgoing = found[self._part(turn + 1)], content
            if turn < count - 1:
                part += self._read(content, part)
                self._write(part, content)
            if turn >= count - 2:
                part.copy_(self._read(content, part))
        for work in sent:
            assert work is not None
            work.wait()
        return found

    def _write(self, part: Tensor, content: Tensor) -> None:
        packed = pack_values(part, self._bits)
        content[: packed.numel()] = packed

    def _read(self, content: Tensor, part: Tensor) -> Tensor:
        size = encoded_bytes(part.numel(), self._bits)
        return unpack_values(content[:size], part.numel(), self._bits)


OUTER_RATE, OUTER_MOMENTUM = 0.7, 0.9
"""Outer optimiser of DiLoCo: SGD with Nesterov's momentum."""

OWN_SHARE = 0.5
"""Share of a replica's own parameters where what comes back is mixed with steps done meanwhile, as
in Streaming DiLoCo (A. Douillard et al., arXiv 2501.18512, section 2.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScale:
    """Factors on the times and on the bytes that a plan says."""

    time: float = 1.0
    num_bytes: float = 1.0


class _Part:
    """A bucket as one stage of this rank takes part in it."""

    def __init__(self, bucket: RuntimeBucket, stage: int, model: LlamaStage) -> None:
        place = bucket.stages.index(stage)
        layers = range(bucket.first_layer, bucket.first_layer + bucket.num_layers)
        self.bucket, self.stage = bucket, stage
        self.left_fraction = bucket.left_fractions[place]
        self.inner_sums_s = bucket.inner_sums_s[place]
        self.parameters: list[nn.Parameter] = model.parameters_of(layers)
        self.outer = [one.detach().clone() for one in self.parameters]
        self.momenta = [torch.zeros_like(one) for one in self.parameters]
        self.released = threading.Event()
        self.ring: RingSum | None = None
        self.under_way: tuple[int, Future[Tensor]] | None = None
        """Step after which a sum of changes is taken in."""


class BucketExchange:
    """The exchanges of one rank, in the order of buckets, on threads of its own."""

    def __init__(
        self,
        job: RuntimeJob,
        models: Mapping[int, LlamaStage],
        scale: RunScale,
        group: dist.ProcessGroup | None,
        period: int,
    ) -> None:
        self._job, self._scale, self._group, self._period = job, scale, group, period
        self._step = 0
        self._sums = Queue[tuple[Future[Tensor], RingSum, Tensor]]()
        if job.overlap_steps:
            threading.Thread(target=self._sum_in_turn, daemon=True).start()
        self._device = next(next(iter(models.values())).parameters()).device
        self._has_tags = dist.get_backend() == "gloo"
        self._rank_of = rank_of_stages(job)
        self._parts = [
            (number, _Part(bucket, stage, models[stage]))
            for number, bucket in enumerate(job.buckets)
            for stage in bucket.stages
            if stage in models
        ]
        self._thread, self._is_summed = threading.Thread(), False

    def begin(self, step: int) -> None:
        """Post the receives of what is due in a step, and wait for its gradients."""
        self._step = step
        for number, part in self._parts:
            part.released.clear()
            if len(part.bucket.stages) > 1 and self._is_due(part):
                part.ring = self._ring(number, part)
        self._is_summed = False
        self._thread = threading.Thread(target=self._sum_gradients, daemon=True)
        self._thread.start()  # a daemon, so that a rank that fails ends without it

    def _is_due(self, part: _Part) -> bool:
        return (self._step + 1 - part.bucket.due_step) % self._period == 0

    def _ring(self, number: int, part: _Part) -> RingSum:
        return RingSum(
            [self._rank_of[stage] for stage in part.bucket.stages],
            sum(one.numel() for one in part.parameters),
            self._bits,
            part.bucket.num_bytes * self._scale.num_bytes,
            tag=number if self._has_tags else 0,
            group=self._group,
            device=self._device,
        )

    @property
    def _bits(self) -> float:
        """Bits of a value in messages: gradients are summed up as they are, in FP32."""
        return 32.0 if self._job.steps_between == 1 else self._job.bits_per_value

    def releases(self, stage: int) -> Sequence[tuple[float, threading.Event]]:
        """Parts of the last pass of a stage that are left when its buckets are ready, in order."""
        own = [
            (part.left_fraction, part.released)
            for _, part in self._parts
            if part.stage == stage and not part.bucket.after_step
        ]
        return sorted(own, key=lambda one: -one[0])

    def _sum_gradients(self) -> None:
        for _, part in self._parts:
            if part.bucket.after_step:
                continue
            part.released.wait()
            self._sleep(part.inner_sums_s[0])
            if part.ring is not None and self._is_due(part):
                gradients = [one.grad for one in part.parameters]
                assert all(one is not None for one in gradients)
                total = part.ring.run(
                    _flat([one for one in gradients if one is not None], self._device)
                )
                for one, own in zip(part.parameters, _split(total, part), strict=True):
                    one.grad = own
            self._sleep(part.inner_sums_s[1])
        self._is_summed = True

    def finish(self) -> None:
        """Wait until all gradients are summed up.

        Raises
        ------
        RuntimeError
            If they are not, because a sum failed on its thread, which has said why.
        """
        self._thread.join()
        if not self._is_summed:
            raise RuntimeError("exchange: a sum of gradients failed, see above")

    def exchange_changes(self) -> None:
        """Exchange changes of parameters where they are due; a replica counts by its tokens.

        Those of fragments are under way during later steps.
        """
        for _, part in self._parts:
            if part.under_way is not None and part.under_way[0] == self._step:
                self._take_in(part)
            if not part.bucket.after_step or part.ring is None or not self._is_due(part):
                continue
            self._sleep(part.inner_sums_s[0])
            share = self._job.shares[self._job.stages[part.stage].replica] / sum(self._job.shares)
            pairs = zip(part.outer, part.parameters, strict=True)
            changes = [(outer - own.detach()) * share for outer, own in pairs]
            values = _flat(changes, self._device)
            if self._job.overlap_steps:
                total = Future[Tensor]()
                part.under_way = self._step + self._job.overlap_steps, total
                self._sums.put((total, part.ring, values))
            else:
                self._step_outer(part, part.ring.run(values))
            self._sleep(part.inner_sums_s[1])

    def _sum_in_turn(self) -> None:
        """Do sums of fragments in their order; taking one in that failed is an error."""
        while True:
            total, ring, values = self._sums.get()
            try:
                total.set_result(ring.run(values))
            finally:
                if not total.done():
                    failed = "exchange: a sum of changes failed, see above"
                    total.set_exception(RuntimeError(failed))

    def take_in_rest(self) -> None:
        """Wait for all that is under way when the last step is done."""
        for _, part in self._parts:
            if part.under_way is not None:
                self._take_in(part)

    def _take_in(self, part: _Part) -> None:
        """Wait for a sum of changes, and step the outer optimiser by it."""
        assert part.under_way is not None
        total, part.under_way = part.under_way[1].result(), None
        self._step_outer(part, total)

    def _step_outer(self, part: _Part, total: Tensor) -> None:
        own_share = OWN_SHARE if self._job.overlap_steps else 0.0
        for number, change in enumerate(_split(total, part)):
            momentum = part.momenta[number].mul_(OUTER_MOMENTUM).add_(change)
            part.outer[number] -= OUTER_RATE * (change + OUTER_MOMENTUM * momentum)
            with torch.no_grad():
                part.parameters[number].lerp_(part.outer[number], 1.0 - own_share)

    def _sleep(self, duration_s: float) -> None:
        time.sleep(duration_s * self._scale.time)


def _flat(values: Sequence[Tensor], device: torch.device) -> Tensor:
    """Values in a row, of which there may be none."""
    return torch.cat([torch.zeros(0, device=device), *(one.flatten() for one in values)])


def _split(total: Tensor, part: _Part) -> list[Tensor]:
    sizes = [one.numel() for one in part.parameters]
    parts = torch.split(total, sizes)
    return [own.view(one.shape) for own, one in zip(parts, part.parameters, strict=True)]
