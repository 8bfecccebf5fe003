"""Division of the work among the GPUs of a domain: tensor, data and pipeline parallelism."""

import re
import reprlib
from dataclasses import dataclass
from typing import Literal, get_args

from des.base.checks import MOST_ITEMS, require_count, require_one_of, require_positive
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from des.schedules import interleaved

ChunkOrder = Literal["loop", "wave"]
"""Way of the model through the devices of a pipeline: round and round, or there and back."""

Sharding = Literal["none", "optimiser", "gradients", "parameters"]
"""State of the model that replicas spread over themselves: each level includes those before it.

The optimiser is ZeRO-1, gradients are ZeRO-2, parameters are ZeRO-3 or FSDP.
"""

_LEVELS: tuple[str, ...] = get_args(Sharding)
_LETTERS: dict[str, ChunkOrder] = {"v": "loop", "w": "wave"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """Division of one domain's layers among its GPUs.

    ``pipeline`` devices in a row take equal parts of the layers. Each is ``data`` replicas that
    split every microbatch, of ``tensor`` GPUs that split every layer. GPUs beyond their product
    stand idle. ``sharding`` is what the replicas spread over themselves, see `Sharding`.

    ``context`` GPUs split every sequence of a replica, with a copy of its weights each. Of all the
    copies, ``expert`` in a row share the routed experts of every sparse layer among them;
    ``expert_skew`` is the load of the fullest of them over the mean, of tokens and work alike.
    Each expert is cut over a tensor group; with ``whole_experts`` (expert tensor parallel degree 1
    of Megatron-LM) it is whole on a GPU, and ``expert`` GPUs in a row share the experts.

    With ``sequence_parallel`` the GPUs that split a layer also split what is between its matrix
    products, norms, dropout and residual sums, by tokens [1]_; without it each does that whole and
    keeps all of its activations.

    A device may hold several parts, ``chunks``, each of which is a stage. In a ``loop`` the model
    passes the devices from the first to the last, once a chunk, as interleaved 1F1B needs it; in a
    ``wave`` it turns round at the ends, as ZB-V and Hanayo do.

    References
    ----------
    .. [1] V. Korthikanti et al., "Reducing activation recomputation in large transformer models",
       MLSys'23 (arXiv:2205.05198), section 4.2.
    """

    tensor: int = 1
    data: int = 1
    pipeline: int = 1
    sharding: Sharding = "none"
    sequence_parallel: bool = True
    chunks: int = 1
    chunk_order: ChunkOrder = "loop"
    context: int = 1
    expert: int = 1
    expert_skew: float = 1.0
    whole_experts: bool = False

    def __post_init__(self) -> None:
        for field in ("tensor", "data", "pipeline", "chunks", "context", "expert"):
            require_count("parallelism", field, getattr(self, field), MOST_ITEMS)
        self._check_experts()
        require_one_of("parallelism", "sharding", self.sharding, _LEVELS)
        for field in ("sequence_parallel", "whole_experts"):
            if not isinstance(getattr(self, field), bool):
                raise ValueError(
                    f"parallelism: {field} must be True or False, got {getattr(self, field)!r}"
                )
        if self.whole_experts and (1 in (self.tensor, self.expert) or not self.sequence_parallel):
            raise ValueError(
                "parallelism: whole_experts needs tensor and expert above 1 and sequence "
                f"parallelism; got {self}"
            )
        require_one_of("parallelism", "chunk_order", self.chunk_order, get_args(ChunkOrder))
        if self.pipeline == 1 and self.chunks > 1:
            raise ValueError(
                "parallelism: chunks must be 1 where pipeline is 1, as there are no other devices "
                f"to pass in between; got {self.chunks}"
            )

    def _check_experts(self) -> None:
        """Refuse groups that leave copies or GPUs over, and loads that cannot be."""
        if self.gpus_per_device % self.expert_parts:
            among = self.gpus_per_device if self.whole_experts else self.copies
            tensor = "tensor x " if self.whole_experts else ""
            raise ValueError(
                f"parallelism: expert must divide {tensor}data x context, {among}; "
                f"got {self.expert}"
            )
        require_positive("parallelism", "expert_skew", self.expert_skew)
        if not 1.0 <= self.expert_skew <= self.expert:
            raise ValueError(
                f"parallelism: expert_skew must be 1 to expert, {self.expert}, as the fullest of "
                f"that many has no less than the mean and no more than all; got {self.expert_skew}"
            )

    @classmethod
    def parse(cls, text: str) -> "Parallelism":
        """Read ``"2x4x1"``: tensor, data and pipeline; ``"8x1x4v3"`` has 3 chunks a device.

        The letter before the number of chunks is ``v`` for a loop and ``w`` for a wave. Behind it
        may stand ``c2`` for a context and ``e8`` for an expert parallelism, ``e8t1`` for one of
        whole experts.

        Raises
        ------
        ValueError
            If it is not three whole numbers of at least 1, with perhaps others behind them.

        Examples
        --------
        >>> Parallelism.parse("1x1x4w2").device_of_chunk
        (0, 1, 2, 3, 3, 2, 1, 0)
        >>> str(Parallelism.parse("1x4x1c2e8"))
        'tensor 1 x data 4 x pipeline 1 x context 2, experts over 8'
        >>> str(Parallelism.parse("2x4x1e8t1"))
        'tensor 2 x data 4 x pipeline 1, whole experts over 8'
        """
        number = "([0-9]{1,9})"
        more = f"(?:([vw]){number})?(?:c{number})?(?:e{number}(t1)?)?"
        match = re.fullmatch(rf"\s*{number}x{number}x{number}{more}\s*", text)
        if match is None:
            raise ValueError(
                "parallelism: must be TENSORxDATAxPIPELINE, such as 2x4x1, with vCHUNKS or wCHUNKS "
                "behind it for several chunks a device in a loop or a wave, such as 8x1x4v3, then "
                "cCONTEXT and eEXPERT, such as 1x4x1c2e8, and t1 for whole experts; "
                f"got {reprlib.repr(text)}"
            )
        tensor, data, pipeline = map(int, match.groups()[:3])
        return cls(
            tensor=tensor,
            data=data,
            pipeline=pipeline,
            chunks=int(match[5] or 1),
            chunk_order=_LETTERS[match[4] or "v"],
            context=int(match[6] or 1),
            expert=int(match[7] or 1),
            whole_experts=match[8] is not None,
        )

    @property
    def copies(self) -> int:
        """GPUs of a device with equal weights, experts apart; each has its part of the tokens."""
        return self.data * self.context

    @property
    def gpus_per_device(self) -> int:
        """GPUs that work as one stage of the pipeline."""
        return self.tensor * self.copies

    @property
    def expert_parts(self) -> int:
        """GPUs in a row over which the routed experts of a layer lie, each with another part."""
        return self.expert if self.whole_experts else self.tensor * self.expert

    @property
    def expert_copies(self) -> int:
        """GPUs of a device with the same part of the routed experts."""
        return self.gpus_per_device // self.expert_parts

    @property
    def num_gpus(self) -> int:
        """GPUs in use."""
        return self.gpus_per_device * self.pipeline

    @property
    def device_of_chunk(self) -> tuple[int, ...]:
        """Device of each chunk, in the order of the model."""
        if self.chunk_order == "wave":
            return interleaved.wave_devices(self.pipeline, self.chunks)
        return interleaved.loop_devices(self.pipeline, self.chunks)

    def shards(self, state: Sharding) -> bool:
        """Whether replicas spread some state over themselves.

        Examples
        --------
        >>> zero2 = Parallelism(data=8, sharding="gradients")
        >>> zero2.shards("optimiser"), zero2.shards("parameters")
        (True, False)
        """
        return _LEVELS.index(self.sharding) >= _LEVELS.index(state)

    def __str__(self) -> str:
        sharded = "" if self.sharding == "none" else f", sharded {self.sharding}"
        whole = "" if self.sequence_parallel else ", no sequence parallelism"
        chunks = f" of {self.chunks} chunks in a {self.chunk_order}" if self.chunks > 1 else ""
        context = f" x context {self.context}" if self.context > 1 else ""
        kind = "whole experts" if self.whole_experts else "experts"
        experts = f", {kind} over {self.expert}" if self.expert > 1 else ""
        skewed = f" of load {self.expert_skew:g}" if self.expert_skew > 1.0 else ""
        return (
            f"tensor {self.tensor} x data {self.data} x pipeline {self.pipeline}{chunks}{context}"
            f"{experts}{skewed}{sharded}{whole}"
        )


UNSHARED = Parallelism()
"""A device of one GPU: what a domain without a parallelism counts as, layer by layer."""
