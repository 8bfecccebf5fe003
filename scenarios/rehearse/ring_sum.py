"""Sum over replicas in a ring, in messages of some bits a value, all receives posted first."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch import distributed as dist

from scenarios.rehearse.outer_bits import encoded_bytes, packed_values, unpacked_values


class RingSum:
    """One sum of equally long values over ranks; receives are posted when it is made.

    Every member gets the same bits: each part is summed up along the ring, and goes round once more
    as its last member has written it.
    """

    def __init__(
        self,
        ranks: Sequence[int],
        num_values: int,
        bits: float,
        *,
        tag: int,
        group: dist.ProcessGroup | None,
        device: torch.device,
    ) -> None:
        self.num_values, self.device = num_values, device
        self._ranks, self._bits, self._tag, self._group = ranks, bits, tag, group
        self._place = ranks.index(dist.get_rank())
        count = len(ranks)
        self._bounds = [num_values * part // count for part in range(count + 1)]
        self._received = []
        for turn in range(2 * (count - 1)):
            size = encoded_bytes(self._length(self._part(turn + 1)), bits)
            content = torch.empty(size, dtype=torch.uint8, device=device)
            work = dist.irecv(content, ranks[self._place - 1], group=group, tag=tag)
            assert work is not None
            self._received.append((content, work))

    def _part(self, turn: int) -> int:
        """Part that is sent at a turn; the one that comes is sent at the next."""
        return (self._place - turn) % len(self._ranks)

    def _length(self, part: int) -> int:
        return self._bounds[part + 1] - self._bounds[part]

    def run(self, values: Tensor) -> Tensor:
        """Return the sum, the same on all ranks."""
        found, count = values.clone(), len(self._ranks)
        after, sent = self._ranks[(self._place + 1) % count], []
        outgoing = packed_values(self._slice(found, 0), self._bits)
        for turn in range(2 * (count - 1)):
            work = dist.isend(outgoing, after, group=self._group, tag=self._tag)
            assert work is not None
            sent.append((work, outgoing))
            content, arrival = self._received[turn]
            arrival.wait()
            part = self._slice(found, turn + 1)
            other = unpacked_values(content, part.numel(), self._bits)
            if turn >= count - 1:
                part.copy_(other)
                outgoing = content
                continue
            part += other
            outgoing = packed_values(part, self._bits)
            if turn == count - 2:
                part.copy_(unpacked_values(outgoing, part.numel(), self._bits))
        for work, _ in sent:
            work.wait()
        return found

    def _slice(self, values: Tensor, turn: int) -> Tensor:
        part = self._part(turn)
        return values[self._bounds[part] : self._bounds[part + 1]]
