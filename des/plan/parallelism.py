"""Division of a domain's layers among its GPUs."""

import re
import reprlib
from dataclasses import dataclass
from typing import Literal, get_args

from des.base.checks import MOST_ITEMS, require_count

Sharding = Literal["none", "optimiser", "gradients", "parameters"]
"""State of the model that replicas spread over themselves: each level includes those before it.

The optimiser is ZeRO-1, gradients are ZeRO-2, parameters are ZeRO-3 or FSDP.
"""

_LEVELS: tuple[str, ...] = get_args(Sharding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """Division of one domain's layers among its GPUs.

    ``pipeline`` devices in a row take equal parts of the layers. Each is ``data`` replicas that
    split every microbatch, of ``tensor`` GPUs that split every layer. GPUs beyond their product
    stand idle. ``sharding`` is what the replicas spread over themselves, see `Sharding`.
    """

    tensor: int = 1
    data: int = 1
    pipeline: int = 1
    sharding: Sharding = "none"

    def __post_init__(self) -> None:
        for field in ("tensor", "data", "pipeline"):
            require_count("parallelism", field, getattr(self, field), MOST_ITEMS)
        if self.sharding not in _LEVELS:
            raise ValueError(
                f"parallelism: sharding must be one of {', '.join(_LEVELS)}; got {self.sharding!r}"
            )

    @classmethod
    def parse(cls, text: str) -> "Parallelism":
        """Read ``"2x4x1"``: tensor, data and pipeline.

        Raises
        ------
        ValueError
            If it is not three whole numbers of at least 1.
        """
        match = re.fullmatch(r"\s*([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})\s*", text)
        if match is None:
            raise ValueError(
                "parallelism: must be TENSORxDATAxPIPELINE, such as 2x4x1, "
                f"got {reprlib.repr(text)}"
            )
        tensor, data, pipeline = map(int, match.groups())
        return cls(tensor=tensor, data=data, pipeline=pipeline)

    @property
    def gpus_per_device(self) -> int:
        """GPUs that work as one stage of the pipeline."""
        return self.tensor * self.data

    @property
    def num_gpus(self) -> int:
        """GPUs in use."""
        return self.gpus_per_device * self.pipeline

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
        return f"tensor {self.tensor} x data {self.data} x pipeline {self.pipeline}{sharded}"
