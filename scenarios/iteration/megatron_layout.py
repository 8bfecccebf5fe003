"""Layers of each pipeline stage, as Megatron-LM's flags say them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from des.base.checks import MOST_ITEMS

_SYMBOLS = {"E": "embedding", "t": "layer", "m": "MTP layer", "L": "loss"}
_FLAG = "--pipeline-model-parallel-layout"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenLayout:
    """Layers divided evenly over stages, but for those of the first and the last rank.

    ``num_layers`` of the model over ``num_ranks`` x ``num_chunks`` stages; the ends, where given,
    are the layers of all chunks of the first and the last rank.
    """

    num_layers: int
    num_ranks: int
    num_chunks: int = 1
    first: int | None = None
    last: int | None = None

    def stage_layers(self) -> tuple[int, ...]:
        """Layers of each stage, in the order of the model.

        Raises
        ------
        ValueError
            If they cannot be divided so.

        Examples
        --------
        >>> EvenLayout(num_layers=10, num_ranks=4, first=3, last=1).stage_layers()
        (3, 3, 3, 1)
        """
        ends = [one for one in (self.first, self.last) if one is not None]
        middle = self.num_layers - sum(ends)
        ranks = self.num_ranks - len(ends)
        if ranks < 0 or middle < 0 or (middle if ranks == 0 else middle % ranks):
            raise ValueError(
                f"--num-layers: must be divisible by the pipeline-parallel size {self.num_ranks}, "
                f"the layers of a first and last stage that are given apart; got {self.num_layers}"
            )
        of_rank = [
            *([] if self.first is None else [self.first]),
            *([middle // ranks] * ranks if ranks else []),
            *([] if self.last is None else [self.last]),
        ]
        for layers in of_rank:
            if layers % self.num_chunks or not layers:
                raise ValueError(
                    f"--num-layers: each rank's layers must be a multiple of its {self.num_chunks} "
                    f"virtual stages and at least as many; got {layers}"
                )
        return tuple(layers // self.num_chunks for layers in of_rank) * self.num_chunks


def layout_layers(text: str, num_ranks: int, num_layers: int) -> tuple[int, ...]:
    """Layers of each stage of a layout, in the order of the model.

    ``E`` is the embedding, ``t`` a layer and ``L`` the loss; a bar stands between stages, ``x*n``
    repeats a symbol and ``(..)*n`` a group, commas are not looked at.

    Raises
    ------
    ValueError
        If Megatron-LM refuses the text, or a stage has no layers, as none of ours has.

    Examples
    --------
    >>> layout_layers("Et*3|(tt|)*2,t*2,L", 4, 9)
    (3, 2, 2, 2)
    """
    stages = [_count(stage) for stage in _expand(text).split("|")]
    whole = "".join(stages)
    if not whole.startswith("E") or not whole.endswith("L") or whole.count("E") != 1:
        raise ValueError(f"{_FLAG}: must begin with E and end with L, each once; got {text!r}")
    if whole.count("L") != 1 or "m" in whole:
        raise ValueError(f"{_FLAG}: must have one L and no m, MTP layers; got {text!r}")
    if len(stages) % num_ranks:
        raise ValueError(
            f"{_FLAG}: stages must be a multiple of --pipeline-model-parallel-size {num_ranks}; "
            f"got {len(stages)}"
        )
    layers = tuple(stage.count("t") for stage in stages)
    if sum(layers) != num_layers:
        raise ValueError(
            f"{_FLAG}: must have as many t as --num-layers {num_layers}; got {sum(layers)}"
        )
    _require_layers(stages, layers)
    return layers


def _require_layers(stages: Sequence[str], layers: Sequence[int]) -> None:
    for number, (stage, count) in enumerate(zip(stages, layers, strict=True)):
        if count == 0:
            alone = " and ".join(_SYMBOLS[symbol] for symbol in stage)
            raise ValueError(
                f"{_FLAG}: stage {number} must have a layer, as embedding and head are parts of "
                f"the first and the last one here; got {alone or 'nothing'} alone"
            )


def _expand(text: str) -> str:
    """Write repetitions out."""
    if re.search(r"\([^)]*\(", text):
        raise ValueError(f"{_FLAG}: parentheses must not lie in parentheses; got {text!r}")
    found = text.replace(",", "")
    for pattern in (r"\(([^()]*)\)(?:\*([0-9]{1,6}))?", r"([A-Za-z|])\*([0-9]{1,6})"):
        if sum(int(count or 1) * len(part) for part, count in re.findall(pattern, found)) > 10**6:
            raise ValueError(f"{_FLAG}: must have at most {MOST_ITEMS} layers; got {text!r}")
        found = re.sub(pattern, lambda one: one[1] * int(one[2] or 1), found)
    return found


def _count(stage: str) -> str:
    for symbol in stage:
        if symbol not in _SYMBOLS:
            known = ", ".join(f"{each} {what}" for each, what in _SYMBOLS.items())
            raise ValueError(f"{_FLAG}: must be of {known}, | * ( ) and commas; got {symbol!r}")
    return stage
