"""Sum over replicas in a ring, in messages of some bits a value, all receives posted first."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch import distributed as dist

from scenarios.rehearse.outer_bits import encoded_bytes, packed_values, unpacked_values


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
        packed = packed_values(part, self._bits)
        content[: packed.numel()] = packed

    def _read(self, content: Tensor, part: Tensor) -> Tensor:
        size = encoded_bytes(part.numel(), self._bits)
        return unpacked_values(content[:size], part.numel(), self._bits)
