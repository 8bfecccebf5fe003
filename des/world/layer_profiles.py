"""Profiles of layers: measured times of their passes on one GPU model."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from des.base.checks import require_count, require_non_negative, require_positive

LayerKind = Literal["dense", "moe", "embedding", "head"]
"""Kinds of layers: with one feed-forward, with a mixture of experts; the token table before them;
the output matrix and the loss behind them."""

LAYER_KINDS: tuple[LayerKind, ...] = get_args(LayerKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledLayer:
    """Layer by its kind and sizes; a measured layer whose size is None fits layers of any.

    ``ffn_size`` is that of one expert in a mixture of them, ``ffn_matrices`` 3 for a gated
    feed-forward and 2 for a plain one.
    """

    kind: LayerKind
    hidden_size: int
    num_heads: int | None = None
    num_key_value_heads: int | None = None
    ffn_size: int | None = None
    ffn_matrices: int | None = None
    vocabulary_size: int | None = None
    num_experts: int | None = None
    experts_per_token: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in LAYER_KINDS:
            raise ValueError(f"layer must be one of {', '.join(LAYER_KINDS)}; got {self.kind!r}")
        for name, size in self.sizes.items():
            require_count("layer", name, size)

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes that are known, by their names."""
        named = {name: getattr(self, name) for name in LAYER_SIZES}
        return {name: size for name, size in named.items() if size is not None}

    def fits(self, used: "ProfiledLayer") -> bool:
        """Whether times of this layer are those of another, in use."""
        return self.kind == used.kind and all(
            getattr(used, name) == size for name, size in self.sizes.items()
        )

    def __str__(self) -> str:
        return ", ".join((self.kind, *(f"{name} {size}" for name, size in self.sizes.items())))


LAYER_SIZES = tuple(field.name for field in fields(ProfiledLayer) if field.name != "kind")
"""Names of the sizes of a layer."""


class PointPlace(NamedTuple):
    """Circumstances of a measurement: GPUs that share the layer, sequences, tokens of each."""

    tensor: int
    microbatch_size: float
    sequence: int

    def __str__(self) -> str:
        return (
            f"tensor {self.tensor}, microbatch_size {self.microbatch_size:g}, "
            f"sequence {self.sequence}"
        )


class MeasuredPasses(NamedTuple):
    """Times of the passes of a layer over one microbatch, without any recomputation. [s]"""

    forward: float
    input_gradient: float
    weight_gradient: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePoint:
    """Measured times of one layer at one place, each that of one GPU. [s]"""

    layer: ProfiledLayer
    tensor: int
    microbatch_size: int
    sequence: int
    forward_s: float
    input_gradient_s: float
    weight_gradient_s: float

    def __post_init__(self) -> None:
        for field in ("tensor", "microbatch_size", "sequence"):
            require_count("point", field, getattr(self, field))
        require_positive("point", "forward_s", self.forward_s)
        for field in ("input_gradient_s", "weight_gradient_s"):
            require_non_negative("point", field, getattr(self, field))

    @property
    def place(self) -> PointPlace:
        """Circumstances of the measurement."""
        return PointPlace(self.tensor, self.microbatch_size, self.sequence)

    @property
    def passes(self) -> MeasuredPasses:
        """Times of the passes."""
        return MeasuredPasses(self.forward_s, self.input_gradient_s, self.weight_gradient_s)


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerProfile:
    """Measured times of layers on one GPU model.

    Parameters
    ----------
    name, gpu
        Name of the file, and the GPU model whose points these are.
    includes_exchanges
        Times of layers that several GPUs share include the sums of their results over the group.
    extrapolates
        Outside the measured points the time of the nearest one is scaled as shapes of matrices
        scale; without it such layers are refused.
    """

    name: str
    gpu: str
    points: tuple[ProfilePoint, ...]
    includes_exchanges: bool = False
    extrapolates: bool = False

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError(f"profile {self.name}: must hold at least one point, got none")
        seen: set[tuple[ProfiledLayer, PointPlace]] = set()
        for point in self.points:
            key = point.layer, point.place
            if key in seen:
                raise ValueError(
                    f"profile {self.name}: every point must be given once, got {point.layer} at "
                    f"{point.place} twice"
                )
            seen.add(key)

    @cached_property
    def digest(self) -> bytes:
        """Digest of all fields: equal for equal profiles alone."""
        values = tuple(getattr(self, field.name) for field in fields(self))
        return hashlib.sha256(repr(values).encode()).digest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LayerProfile):
            return NotImplemented
        return self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def times_of(self) -> Mapping[ProfiledLayer, Mapping[PointPlace, MeasuredPasses]]:
        """Times by layer and place."""
        found: dict[ProfiledLayer, dict[PointPlace, MeasuredPasses]] = {}
        for point in self.points:
            found.setdefault(point.layer, {})[point.place] = point.passes
        return found

    def holds(self, kind: LayerKind) -> bool:
        """Whether there are points of a kind of layer."""
        return any(layer.kind == kind for layer in self.times_of)
