"""Division of the work among the GPUs of a domain: tensor, data and pipeline parallelism."""

import re
import reprlib
from dataclasses import dataclass
from typing import Literal, get_args

from des.base.checks import MOST_ITEMS, require_count
from des.schedules.interleaved import loop_devices, wave_devices

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

    A device may hold several parts, ``chunks``, each of which is a stage. In a ``loop`` the model
    passes the devices from the first to the last, once a chunk, as interleaved 1F1B needs it; in a
    ``wave`` it turns round at the ends, as ZB-V and Hanayo do.
    """

    tensor: int = 1
    data: int = 1
    pipeline: int = 1
    sharding: Sharding = "none"
    chunks: int = 1
    chunk_order: ChunkOrder = "loop"

    def __post_init__(self) -> None:
        for field in ("tensor", "data", "pipeline", "chunks"):
            require_count("parallelism", field, getattr(self, field), MOST_ITEMS)
        if self.sharding not in _LEVELS:
            raise ValueError(
                f"parallelism: sharding must be one of {', '.join(_LEVELS)}; got {self.sharding!r}"
            )
        if self.chunk_order not in get_args(ChunkOrder):
            raise ValueError(
                f"parallelism: chunk_order must be one of {', '.join(get_args(ChunkOrder))}; "
                f"got {self.chunk_order!r}"
            )
        if self.pipeline == 1 and self.chunks > 1:
            raise ValueError(
                "parallelism: chunks must be 1 where pipeline is 1, as there are no other devices "
                f"to pass in between; got {self.chunks}"
            )

    @classmethod
    def parse(cls, text: str) -> "Parallelism":
        """Read ``"2x4x1"``: tensor, data and pipeline; ``"8x1x4v3"`` has 3 chunks a device.

        The letter before the number of chunks is ``v`` for a loop and ``w`` for a wave.

        Raises
        ------
        ValueError
            If it is not three whole numbers of at least 1, and perhaps a number of chunks.

        Examples
        --------
        >>> Parallelism.parse("1x1x4w2").device_of_chunk
        (0, 1, 2, 3, 3, 2, 1, 0)
        """
        number = "([0-9]{1,9})"
        match = re.fullmatch(rf"\s*{number}x{number}x{number}(?:([vw]){number})?\s*", text)
        if match is None:
            raise ValueError(
                "parallelism: must be TENSORxDATAxPIPELINE, such as 2x4x1, with vCHUNKS or wCHUNKS "
                "behind it for several chunks a device in a loop or a wave, such as 8x1x4v3; "
                f"got {reprlib.repr(text)}"
            )
        tensor, data, pipeline = map(int, match.groups()[:3])
        if match[4] is None:
            return cls(tensor=tensor, data=data, pipeline=pipeline)
        return cls(
            tensor=tensor,
            data=data,
            pipeline=pipeline,
            chunks=int(match[5]),
            chunk_order=_LETTERS[match[4]],
        )

    @property
    def gpus_per_device(self) -> int:
        """GPUs that work as one stage of the pipeline."""
        return self.tensor * self.data

    @property
    def num_gpus(self) -> int:
        """GPUs in use."""
        return self.gpus_per_device * self.pipeline

    @property
    def device_of_chunk(self) -> tuple[int, ...]:
        """Device of each chunk, in the order of the model."""
        devices_of = wave_devices if self.chunk_order == "wave" else loop_devices
        return devices_of(self.pipeline, self.chunks)

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
        chunks = f" of {self.chunks} chunks in a {self.chunk_order}" if self.chunks > 1 else ""
        return (
            f"tensor {self.tensor} x data {self.data} x pipeline {self.pipeline}{chunks}{sharded}"
        )
