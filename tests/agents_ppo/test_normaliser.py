"""Means and deviations of what has been seen, and observations standardised by them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from agents.ppo.normaliser import ObservationMoments, RunningNormaliser


@given(
    batches=st.lists(
        npst.arrays(
            np.float32,
            st.tuples(st.integers(1, 6), st.just(3)),
            elements=st.floats(-100, 100, width=32),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_normaliser_has_the_moments_of_all_batches_together(batches):
    normaliser = RunningNormaliser(3)
    for batch in batches:
        normaliser.merge(ObservationMoments.of(torch.from_numpy(batch)))

    together = np.concatenate(batches).astype(np.float64)
    np.testing.assert_allclose(normaliser.mean.numpy(), together.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(normaliser.variance.numpy(), together.var(axis=0), atol=1e-9)


@given(constant=st.floats(-1e6, 1e6, width=32), num_batches=st.integers(1, 30))
def test_entry_that_never_varied_is_normalised_to_zero(constant, num_batches):
    normaliser = RunningNormaliser(1)
    for _ in range(num_batches):
        normaliser.merge(ObservationMoments.of(torch.full((7, 1), constant)))

    assert normaliser(torch.full((1, 1), constant)).item() == 0
    assert normaliser(torch.full((1, 1), constant + 1)).item() == 0


def test_small_entries_are_normalised_to_mean_zero_and_deviation_one():
    entries = 0.01 + 1e-5 * torch.rand(1000, 1, generator=torch.Generator().manual_seed(0))
    normaliser = RunningNormaliser(1)
    normaliser.merge(ObservationMoments.of(entries))

    normalised = normaliser(entries)
    assert normalised.mean().item() == pytest.approx(0, abs=1e-5)
    assert normalised.std(correction=0).item() == pytest.approx(1, abs=1e-5)


@given(
    batches=npst.arrays(
        np.float32,
        st.tuples(st.integers(1, 6), st.integers(1, 5), st.just(2)),
        elements=st.floats(-100, 100, width=32),
    )
)
def test_moments_of_equal_batches_are_those_of_all_rows(batches):
    together = ObservationMoments.of_equal_batches(
        [ObservationMoments.of(torch.from_numpy(part)) for part in batches]
    )

    rows = batches.reshape(-1, 2).astype(np.float64)
    assert together.count == len(rows)
    np.testing.assert_allclose(together.mean.numpy(), rows.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(
        together.sum_of_squares.numpy(), rows.var(axis=0) * len(rows), atol=1e-6
    )


def test_standardising_into_a_buffer_leaves_the_observations_alone():
    normaliser = RunningNormaliser(1)
    normaliser.merge(ObservationMoments.of(torch.tensor([[0.0], [2.0]])))
    observations, buffer = torch.tensor([[3.0], [100.0]]), torch.empty(2, 1)

    result = normaliser(observations, out=buffer)

    assert result.data_ptr() == buffer.data_ptr()
    assert buffer.flatten().tolist() == [2, 10]  # (3 - 1) / 1, and 99 saturates
    assert observations.flatten().tolist() == [3, 100]
