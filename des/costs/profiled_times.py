"""Times of layers by a profile: between its points by lines, outside refused or by shapes."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from des.job.architecture import Architecture
from des.world.layer_profiles import (
    LayerKind,
    LayerProfile,
    MeasuredPasses,
    PointPlace,
    ProfiledLayer,
)

ByShapes = Callable[[PointPlace], MeasuredPasses]
"""Times of a layer from the shapes of its matrices, by which times are carried outside. [s]"""

_Points = Mapping[PointPlace, MeasuredPasses]


def name_layer(architecture: Architecture, layer: int) -> ProfiledLayer:
    """Name a layer of an architecture, by its index, as profiles do."""
    sizes = {
        "hidden_size": architecture.hidden_size,
        "num_heads": architecture.num_heads,
        "num_key_value_heads": architecture.num_key_value_heads,
        "ffn_matrices": 3 if architecture.gated_ffn else 2,
    }
    experts = architecture.experts
    if experts is None or not architecture.is_sparse(layer):
        return ProfiledLayer(kind="dense", ffn_size=architecture.ffn_size, **sizes)
    return ProfiledLayer(
        kind="moe",
        ffn_size=experts.expert_ffn_size,
        num_experts=experts.num_experts,
        experts_per_token=experts.experts_per_token,
        **sizes,
    )


def measured_end(architecture: Architecture, kind: LayerKind) -> ProfiledLayer:
    """Name the embedding or the head of an architecture as profiles do."""
    return ProfiledLayer(
        kind=kind,
        hidden_size=architecture.hidden_size,
        vocabulary_size=architecture.vocabulary_size,
    )


def interpolate_passes(
    profile: LayerProfile, layer: ProfiledLayer, place: PointPlace, by_shapes: ByShapes
) -> MeasuredPasses:
    """Times of a layer's passes: measured, between measured ones, or carried outside. [s]

    Notes
    -----
    Linear in the size of the microbatch within one sequence length, then linear between the two
    nearest lengths that have points on both sides; tensor groups are of a measured width. A profile
    that extrapolates multiplies the times of the nearest point by the ratio that shapes have there
    and here.

    Raises
    ------
    ValueError
        If the profile lacks the layer or the place; the message names the nearest.
    """
    points = _points_of(profile, layer)
    found = _between(points, place)
    if found is not None:
        return found
    nearest = min(points, key=lambda one: _distance(one, place))
    if not profile.extrapolates:
        raise ValueError(
            f"profile {profile.name}: {place} must lie between the points of layer {layer} on "
            f"{profile.gpu}, the nearest of which is {nearest}; extrapolate allows it"
        )
    ratios = zip(points[nearest], by_shapes(nearest), by_shapes(place), strict=True)
    return MeasuredPasses(*(measured * here / there for measured, there, here in ratios))


def is_measured(profile: LayerProfile, architecture: Architecture, place: PointPlace) -> bool:
    """Whether a profile has times of all layers and the head at a place, or may carry them there.

    Raises
    ------
    ValueError
        If the profile lacks a layer at all places; the message names the nearest.
    """
    if profile.extrapolates:
        return True
    layers = {name_layer(architecture, layer) for layer in range(architecture.num_layers)}
    needed = (*layers, measured_end(architecture, "head"))
    return all(_between(_points_of(profile, one), place) is not None for one in needed)


def _points_of(profile: LayerProfile, layer: ProfiledLayer) -> _Points:
    """Points of the layer that says most of those that fit."""
    fitting = [one for one in profile.times_of if one.fits(layer)]
    if fitting:
        return profile.times_of[max(fitting, key=lambda one: len(one.sizes))]
    alike = [one for one in profile.times_of if one.kind == layer.kind]
    if not alike:
        held = ", ".join(dict.fromkeys(one.kind for one in profile.times_of))
        hint = "; extrapolate takes those of the head from shapes" if layer.kind == "head" else ""
        raise ValueError(
            f"profile {profile.name}: must hold times of layer {layer} on {profile.gpu}; it holds "
            f"{held} alone{hint}"
        )
    sizes = layer.sizes
    nearest = min(
        alike,
        key=lambda one: _apart((size, sizes[name]) for name, size in one.sizes.items()),
    )
    raise ValueError(
        f"profile {profile.name}: must hold times of layer {layer} on {profile.gpu}; the nearest "
        f"is {nearest}"
    )


def _apart(pairs: Iterable[tuple[float, float]]) -> float:
    return sum(abs(math.log(own / other)) for own, other in pairs)


def _distance(one: PointPlace, other: PointPlace) -> float:
    return _apart(zip(one, other, strict=True))


def _between(points: _Points, place: PointPlace) -> MeasuredPasses | None:
    """Times at a place between points of a layer; None outside."""
    sizes_of: dict[int, list[int | float]] = {}
    for tensor, size, sequence in points:
        if tensor == place.tensor:
            sizes_of.setdefault(sequence, []).append(size)
    at_length: dict[int, MeasuredPasses] = {}
    for sequence, sizes in sizes_of.items():
        on = [(one, points[PointPlace(place.tensor, one, sequence)]) for one in sorted(sizes)]
        found = _on_line(on, place.microbatch_size)
        if found is not None:
            at_length[sequence] = found
    return _on_line(sorted(at_length.items()), place.sequence)


def _on_line(on: Sequence[tuple[float, MeasuredPasses]], at: float) -> MeasuredPasses | None:
    """Value of the broken line through points in order; None before the first or after the last."""
    for here, passes in on:
        if here == at:
            return passes
    for (left, before), (right, after) in pairwise(on):
        if left < at < right:
            share = (at - left) / (right - left)
            return MeasuredPasses(
                *(a + share * (b - a) for a, b in zip(before, after, strict=True))
            )
    return None
