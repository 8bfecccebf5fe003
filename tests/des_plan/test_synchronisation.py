"""Synchronisation: bytes, times, and the delay of the training."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.plan.synchronisation import (
    EVERY_STEP,
    DiLoCo,
    ReplicatedModel,
    StreamingDiLoCo,
    all_reduce_bytes,
    compute_utilisation,
    exposed_s_per_step,
    fragments_due,
    lowest_bandwidth_bytes_per_s,
)

counts = st.integers(1, 200)
bits = st.sampled_from([4.0, 16.0, 32.0])
modes = st.one_of(
    st.just(EVERY_STEP),
    st.builds(DiLoCo, steps_between=counts, bits_per_value=bits),
    st.builds(
        StreamingDiLoCo,
        steps_between=counts,
        layers_per_fragment=st.integers(1, 12),
        overlap_steps=st.integers(0, 5),
        bits_per_value=bits,
    ),
)
models = st.builds(
    ReplicatedModel,
    num_parameters=st.floats(1e6, 1e12),
    num_layers=st.integers(1, 130),
    step_time_s=st.floats(1e-2, 1e2),
    num_replicas=st.integers(1, 8),
)
bandwidths = st.floats(1e6, 1e12)


def model(*, num_layers=12, step_time_s=3.0, num_replicas=2):
    """2 GB on the wire in BF16 between two replicas; the backward pass of a step takes 2 s."""
    return ReplicatedModel(
        num_parameters=1e9,
        num_layers=num_layers,
        step_time_s=step_time_s,
        num_replicas=num_replicas,
    )


@pytest.mark.parametrize(
    ("bits_per_value", "num_replicas", "expected_bits"),
    [(16.0, 2, 16e9), (4.0, 2, 4e9), (16.0, 4, 24e9), (16.0, 1, 0.0)],
)
def test_an_all_reduce_moves_two_times_all_but_ones_own_part(
    bits_per_value, num_replicas, expected_bits
):
    """2 (R - 1) / R x bits x N: 16 N in BF16 and 4 N in FP4 for two replicas."""
    assert 8 * all_reduce_bytes(1e9, bits_per_value, num_replicas) == expected_bits


@pytest.mark.parametrize(
    ("mode", "bandwidth_bytes_per_s", "exposed_s"),
    [
        (EVERY_STEP, 4e8, 3.0),  # 5 s, of which the backward pass hides 2
        (EVERY_STEP, 2e9, 1 / 12),  # 1 s, hidden but for one of 12 layers
        (DiLoCo(steps_between=10), 4e8, 0.3),  # the same 3 s, once in 10 steps
        (DiLoCo(steps_between=10, bits_per_value=4.0), 1e8, 0.3),  # a quarter of the bits
        # 40 s in 4 fragments of 10 s each, of which 2 s of backward pass and a step of 3 s hide 5
        (StreamingDiLoCo(steps_between=20), 5e7, 1.0),
        (StreamingDiLoCo(steps_between=20, overlap_steps=0), 5e7, 1.6),
        (StreamingDiLoCo(steps_between=20, overlap_steps=3), 5e7, 0.0),
        (StreamingDiLoCo(steps_between=20, layers_per_fragment=12), 5e7, 1.75),
    ],
)
def test_exposed_time_by_hand(mode, bandwidth_bytes_per_s, exposed_s):
    assert exposed_s_per_step(mode, model(), bandwidth_bytes_per_s) == pytest.approx(exposed_s)


def test_layers_that_do_not_divide_make_fragments_of_unequal_bytes():
    """7 layers, 3 a fragment: 3, 2 and 2 layers of 4 s each, of which 5 s are hidden each time."""
    mode = StreamingDiLoCo(steps_between=20)
    exposed_s = (12 - 5) + (8 - 5) + (8 - 5)

    found_s = exposed_s_per_step(mode, model(num_layers=7), 2e9 / 28)

    assert found_s == pytest.approx(exposed_s / 20)


def test_a_wire_with_too_much_to_carry_is_not_hidden_by_many_fragments():
    """100 fragments of 4 s may hide 5 s each, but the 30 s of a period hide no 400."""
    mode = StreamingDiLoCo(steps_between=10, layers_per_fragment=1)

    found_s = exposed_s_per_step(mode, model(num_layers=100), 2e9 / 400)

    assert found_s == pytest.approx((400 - 30) / 10)


def test_utilisation_is_the_share_of_compute_time():
    assert compute_utilisation(EVERY_STEP, model(), 4e8) == 0.5
    assert compute_utilisation(DiLoCo(steps_between=10), model(), 4e8) == pytest.approx(30 / 33)


def test_a_lone_replica_waits_for_no_other():
    assert compute_utilisation(EVERY_STEP, model(num_replicas=1), 1.0) == 1.0


@given(mode=modes, model=models, bandwidth=bandwidths)
def test_no_wire_carries_more_than_its_bandwidth(mode, model, bandwidth):
    """Bytes of a period over its whole time, computing and waiting, stay within the bandwidth."""
    exposed_s = exposed_s_per_step(mode, model, bandwidth)
    sent = all_reduce_bytes(model.num_parameters, mode.bits_per_value, model.num_replicas)
    period_s = mode.steps_between * (model.step_time_s + exposed_s)

    assert exposed_s >= 0
    assert sent <= bandwidth * period_s * (1 + 1e-9)


@given(mode=modes, model=models, bandwidth=bandwidths, factor=st.floats(1.0, 100.0))
def test_more_bandwidth_never_hurts(mode, model, bandwidth, factor):
    slow = compute_utilisation(mode, model, bandwidth)

    assert compute_utilisation(mode, model, bandwidth * factor) >= slow * (1 - 1e-12)


@given(model=models, bandwidth=bandwidths, steps_between=counts)
def test_streaming_the_whole_model_without_overlap_is_diloco_but_for_the_tail(
    model, bandwidth, steps_between
):
    diloco = DiLoCo(steps_between=steps_between)
    streaming = StreamingDiLoCo(
        steps_between=steps_between, layers_per_fragment=model.num_layers, overlap_steps=0
    )
    sent = all_reduce_bytes(model.num_parameters, 16.0, model.num_replicas)
    tail_s = sent / bandwidth / model.num_layers / steps_between

    longer_s = exposed_s_per_step(diloco, model, bandwidth)
    shorter_s = exposed_s_per_step(streaming, model, bandwidth)

    assert shorter_s <= longer_s <= shorter_s + tail_s * (1 + 1e-9)


@given(mode=modes, num_layers=st.integers(1, 130), start=st.integers(0, 500))
def test_each_layer_is_synchronised_once_in_any_period(mode, num_layers, start):
    due = [
        layer
        for step in range(start, start + mode.steps_between)
        for fragment in fragments_due(mode, step, num_layers)
        for layer in fragment.layers
    ]

    assert sorted(due) == list(range(num_layers))


@given(mode=modes, num_layers=st.integers(1, 130))
def test_fragments_are_due_at_even_intervals(mode, num_layers):
    """Nowhere more than the next whole number of what is due in a step on average."""
    sizes = [len(fragments_due(mode, step, num_layers)) for step in range(mode.steps_between)]
    count = len(mode.fragments(num_layers))

    assert sum(sizes) == count
    assert max(sizes) <= -(-count // mode.steps_between)


def test_streaming_fragments_are_strided_and_the_last_ends_the_period():
    mode = StreamingDiLoCo(steps_between=100)

    fragments = mode.fragments(48)

    assert [fragment.layers for fragment in fragments[:2]] == [(0, 16, 32), (1, 17, 33)]
    assert [fragment.due_step for fragment in fragments[:4]] == [7, 13, 19, 25]
    assert fragments[-1].due_step == 100
    assert fragments_due(mode, 6, 48) == fragments_due(mode, 106, 48) == fragments[:1]
    assert fragments_due(mode, 5, 48) == ()


def test_diloco_is_due_at_the_end_of_each_period_and_every_step_always():
    diloco = DiLoCo(steps_between=3)

    assert [len(fragments_due(diloco, step, 4)) for step in range(6)] == [0, 0, 1, 0, 0, 1]
    assert [len(fragments_due(EVERY_STEP, step, 4)) for step in range(3)] == [1, 1, 1]
    assert fragments_due(EVERY_STEP, 0, 4)[0].layers == (0, 1, 2, 3)


def test_lowest_bandwidth_is_the_least_candidate_that_suffices():
    """Every step reaches 50 % at exactly 0.4 GB/s; no candidate reaches 99.9 %."""
    candidates = [8e8, 3.99e8, 4e8, 5e8]

    assert lowest_bandwidth_bytes_per_s(EVERY_STEP, model(), 0.5, candidates) == 4e8
    assert lowest_bandwidth_bytes_per_s(EVERY_STEP, model(), 0.999, candidates) is None


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: DiLoCo(steps_between=0), "steps_between"),
        (lambda: DiLoCo(bits_per_value=0.0), "bits_per_value"),
        (lambda: StreamingDiLoCo(steps_between=2.5), "steps_between"),
        (lambda: StreamingDiLoCo(layers_per_fragment=0), "layers_per_fragment"),
        (lambda: StreamingDiLoCo(overlap_steps=-1), "overlap_steps"),
        (lambda: StreamingDiLoCo(bits_per_value=float("nan")), "bits_per_value"),
        (lambda: model(num_layers=0), "num_layers"),
        (lambda: model(step_time_s=float("inf")), "step_time_s"),
        (lambda: model(num_replicas=0), "num_replicas"),
        (lambda: compute_utilisation(EVERY_STEP, model(), 0.0), "bandwidth_bytes_per_s"),
        (lambda: lowest_bandwidth_bytes_per_s(EVERY_STEP, model(), 50.0, [1.0]), "utilisation"),
        (lambda: fragments_due(EVERY_STEP, -1, 4), "step"),
    ],
)
def test_bad_values_are_refused_by_name(build, field):
    with pytest.raises(ValueError, match=rf"{field} must be"):
        build()
