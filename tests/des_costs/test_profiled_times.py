"""Measured times of layers: between points by hand, outside refused or scaled by shapes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiled import point, profile_of_shapes, profiled
from shapes import GATED, TINY, UNIT_KERNELS, shape_of, tiny_job
from strategies import unit_domain

from des import Parallelism
from des.costs.layer_products import Spread
from des.costs.layer_times import layer_seconds, speed_of
from des.costs.layer_work import own_layer_seconds, work_before
from des.costs.profiled_times import interpolate_passes, name_layer
from des.job.architecture import MixtureOfExperts
from des.world.layer_profiles import LayerProfile, MeasuredPasses, PointPlace, ProfiledLayer

DENSE = ProfiledLayer(kind="dense", hidden_size=8)
SHAPED = replace(unit_domain("a"), kernels=UNIT_KERNELS)


def profile_of(*points, **fields):
    return LayerProfile(name="p.csv", gpu="h100", points=points, **fields)


RAGGED = profile_of(
    point(DENSE, (1, 1, 100), (2.0, 4.0, 1.0)),
    point(DENSE, (1, 4, 100), (8.0, 10.0, 4.0)),
    point(DENSE, (1, 1, 200), (6.0, 8.0, 2.0)),
    point(DENSE, (1, 2, 200), (10.0, 12.0, 6.0)),
    point(DENSE, (2, 1, 100), (1.5, 3.0, 1.0)),
)


def by_tokens(place):
    return MeasuredPasses(*[place.microbatch_size * place.sequence / place.tensor] * 3)


def found(profile, *place):
    return interpolate_passes(profile, DENSE, PointPlace(*place), by_tokens)


@pytest.mark.parametrize(
    ("place", "times_s"),
    [
        ((1, 1, 100), (2.0, 4.0, 1.0)),
        ((2, 1, 100), (1.5, 3.0, 1.0)),
        ((1, 2, 100), (4.0, 6.0, 2.0)),  # a third of the way from 1 to 4
        ((1, 1.5, 200), (8.0, 10.0, 4.0)),
        ((1, 1, 150), (4.0, 6.0, 1.5)),
        ((1, 2, 125), (5.5, 7.5, 3.0)),  # a quarter of the way from (4, 6, 2) to (10, 12, 6)
    ],
)
def test_between_points_times_are_on_straight_lines(place, times_s):
    assert found(RAGGED, *place) == pytest.approx(times_s)


@pytest.mark.parametrize(
    ("place", "nearest"),
    [
        ((1, 8, 100), "tensor 1, microbatch_size 4, sequence 100"),
        ((1, 0.5, 200), "tensor 1, microbatch_size 1, sequence 200"),
        ((1, 1, 400), "tensor 1, microbatch_size 1, sequence 200"),
        ((1, 3, 190), "tensor 1, microbatch_size 2, sequence 200"),
        ((4, 1, 100), "tensor 2, microbatch_size 1, sequence 100"),
        ((2, 2, 100), "tensor 2, microbatch_size 1, sequence 100"),
    ],
)
def test_outside_the_points_the_nearest_is_named(place, nearest):
    message = (
        f"profile p.csv: {PointPlace(*place)} must lie between the points of layer dense, "
        f"hidden_size 8 on h100, the nearest of which is {nearest}; extrapolate allows it"
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        found(RAGGED, *place)


def test_outside_the_points_times_scale_as_shapes_where_that_is_allowed():
    carried = replace(RAGGED, extrapolates=True)

    assert found(carried, 1, 8, 100) == pytest.approx((16.0, 20.0, 8.0))  # twice the tokens
    assert found(carried, 4, 1, 100) == pytest.approx((0.75, 1.5, 0.5))
    assert found(carried, 1, 2, 125) == found(RAGGED, 1, 2, 125)


def test_missing_layers_are_named_with_the_nearest():
    profile = profile_of(
        point(replace(DENSE, hidden_size=64), (1, 1, 100), (1.0, 1.0, 1.0)),
        point(replace(DENSE, hidden_size=16), (1, 1, 100), (1.0, 1.0, 1.0)),
    )
    with pytest.raises(
        ValueError, match=r"hidden_size 8 on h100; the nearest is dense, hidden_size 16$"
    ):
        found(profile, 1, 1, 100)
    sparse = replace(
        TINY, experts=MixtureOfExperts(num_experts=4, experts_per_token=2, expert_ffn_size=8)
    )
    with pytest.raises(ValueError, match=r"layer moe, hidden_size 8, .* it holds dense alone$"):
        interpolate_passes(RAGGED, name_layer(sparse, 0), PointPlace(1, 1, 100), by_tokens)


def test_the_layer_that_says_most_of_those_that_fit_counts():
    exact = name_layer(TINY, 0)
    profile = profile_of(
        point(DENSE, (1, 1, 100), (1.0, 1.0, 1.0)), point(exact, (1, 1, 100), (2.0, 2.0, 2.0))
    )
    place = PointPlace(1, 1, 100)

    assert interpolate_passes(profile, exact, place, by_tokens).forward == 2.0
    assert interpolate_passes(profile, name_layer(GATED, 0), place, by_tokens).forward == 1.0


def test_points_given_twice_and_no_points_are_refused():
    one = point(DENSE, (1, 1, 100), (1.0, 1.0, 1.0))
    with pytest.raises(
        ValueError, match=r"^profile p.csv: every point must be given once, got dense"
    ):
        profile_of(one, replace(one, forward_s=2.0))
    with pytest.raises(ValueError, match=r"^profile p.csv: must hold at least one point"):
        profile_of()


def test_equal_profiles_are_equal_values():
    again = replace(RAGGED, points=tuple(replace(one) for one in RAGGED.points))

    assert (again, hash(again)) == (RAGGED, hash(RAGGED))
    assert replace(RAGGED, includes_exchanges=True) != RAGGED


@pytest.mark.parametrize("kept", ["none", "flash", "selective", "full"])
@pytest.mark.parametrize("architecture", [TINY, GATED])
def test_a_profile_of_the_times_of_shapes_gives_their_work(architecture, kept):
    """Two sequences on 2 x 1 and 1 x 2 GPUs, and on all of a domain; sums waited for as well."""
    job = tiny_job(architecture, kept)
    measured = profile_of_shapes(job.shape, SHAPED, tensors=(1, 2), sizes=(1, 2), sequences=(4,))
    domain = profiled(SHAPED, measured)

    for shared in (None, Parallelism(tensor=2), Parallelism(data=2)):
        for one, other in zip(
            work_before(job, domain, shared, exchange_s=3.0),
            work_before(job, SHAPED, shared, exchange_s=3.0),
            strict=True,
        ):
            assert one == pytest.approx(other, rel=1e-14)


def test_sums_of_results_are_added_to_times_that_do_not_include_them():
    shape = shape_of(TINY, "full")
    measured = profile_of_shapes(shape, SHAPED, tensors=(2,), sizes=(2,), sequences=(4,))
    inclusive = replace(measured, includes_exchanges=True)
    sizes = {"tensor": 2, "data": 1, "exchange_s": 5.0, "layer": 0}
    apart, quiet = (
        own_layer_seconds(shape, speed_of(profiled(SHAPED, one)), **sizes)
        for one in (measured, inclusive)
    )

    assert apart.forward == quiet.forward + 5.0
    assert apart.recomputation == apart.forward
    assert apart.input_gradient == quiet.input_gradient + 5.0
    assert apart.weight_gradient == quiet.weight_gradient


def test_measured_embeddings_belong_to_the_first_layer():
    job = tiny_job()
    measured = profile_of_shapes(job.shape, SHAPED, sizes=(2,), sequences=(4,))
    table = ProfiledLayer(kind="embedding", hidden_size=8)
    more = replace(measured, points=(*measured.points, point(table, (1, 2, 4), (7.0, 0.0, 3.0))))
    plain, found = (work_before(job, profiled(SHAPED, one)) for one in (measured, more))
    peak = SHAPED.gpu_peak_flops_per_s

    assert found.forward[1] == pytest.approx(plain.forward[1] + 7.0 * peak)
    assert found.backward[-1] == pytest.approx(plain.backward[-1] + 3.0 * peak)


def test_a_profile_without_a_head_is_refused_or_takes_it_from_shapes():
    job = tiny_job()
    whole = profile_of_shapes(job.shape, SHAPED, sizes=(2,), sequences=(4,))
    points = tuple(one for one in whole.points if one.layer.kind != "head")
    headless = replace(whole, points=points)

    message = (
        "domain a: profile shapes.csv: must hold times of layer head, hidden_size 8, "
        "vocabulary_size 16 on h100; it holds dense alone; extrapolate takes those of the head"
    )
    with pytest.raises(ValueError, match=f"^{message}"):
        work_before(job, profiled(SHAPED, headless))
    carried = work_before(job, profiled(SHAPED, replace(headless, extrapolates=True)))
    assert carried == work_before(job, profiled(SHAPED, whole))


def test_shared_sequences_and_experts_need_times_scaled_by_shapes():
    """Two GPUs share a sequence; experts do not matter to dense layers."""
    shape = shape_of(recomputation="selective")
    one = profile_of_shapes(shape, SHAPED, sizes=(2,), sequences=(4,))
    gpu, carried = (
        speed_of(profiled(SHAPED, replace(one, extrapolates=yes))) for yes in (False, True)
    )
    sizes = {"tensor": 1, "data": 1, "exchange_s": 0.0, "layer": 0}

    with pytest.raises(ValueError, match=r"^profile shapes.csv: context and expert must be 1, as"):
        own_layer_seconds(shape, gpu, spread=Spread(context=2), **sizes)
    expected = layer_seconds(shape, gpu, spread=Spread(context=2), **sizes)
    found = own_layer_seconds(shape, carried, spread=Spread(context=2), **sizes)
    assert found == pytest.approx(expected)
    alone = own_layer_seconds(shape, gpu, **sizes)
    assert own_layer_seconds(shape, gpu, spread=Spread(expert=2), **sizes) == alone


@given(st.integers(1, 64), st.integers(1, 4096), st.sampled_from([1, 2, 4]))
def test_profiles_of_shapes_carried_outside_are_shapes(size, sequence, tensor):
    """The nearest point times the ratio of shapes is what shapes give."""
    shape = replace(shape_of(), batch_size=size, sequence=sequence)
    one = profile_of_shapes(shape, SHAPED, sizes=(2,), sequences=(4,))
    gpu = speed_of(profiled(SHAPED, replace(one, extrapolates=True)))
    sizes = {"tensor": tensor, "data": 1, "exchange_s": 0.0, "layer": 0}

    expected = layer_seconds(shape, gpu, **sizes)
    assert own_layer_seconds(shape, gpu, **sizes) == pytest.approx(expected)


def test_a_profile_needs_figures_of_kernels():
    one = profile_of(point(DENSE, (1, 1, 100), (1.0, 1.0, 1.0)))
    with pytest.raises(ValueError, match=r"^domain a: profile needs kernels, got none$"):
        replace(unit_domain("a"), profile=one)
